#!/usr/bin/env bash
# Reads the output of ninja with NINJA_STATUS='[%f/%t] ' and shows its progress
# in a log: a line at the start and for each tenth of the steps. Every other line
# passes: errors, warnings, the commands that failed.
set -euo pipefail

tenth=-1
while IFS= read -r line || [[ -n $line ]]; do
  if [[ $line =~ ^\[([0-9]+)/([0-9]+)\]\  ]]; then
    now=$((10 * BASH_REMATCH[1] / BASH_REMATCH[2]))
    if ((now > tenth)); then
      tenth=$now
      echo "   $((10 * now)) % (${BASH_REMATCH[1]} of ${BASH_REMATCH[2]} steps," \
        "$SECONDS s)"
    fi
  else
    printf '%s\n' "$line"
  fi
done
