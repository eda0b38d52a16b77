#!/usr/bin/env bash
# Checks with a bound that take too long for every change; prints one table at
# its end, even if stopped early, and exits 1 if any of them fails.
#
#   tests/nightly.sh                    # all
#   tests/nightly.sh bundle             # some, by name
#   tests/nightly.sh --list
#
# A check that takes longer than ENCODERD_CHECK_LIMIT (default: 3h, as timeout(1)
# takes it) is ended and fails. Run tests/run.sh once before: it installs what
# the checks need.
#
# A check is a function check_NAME that calls `verdict BOUND FIGURE COMMAND...`
# once, last; its name is in `checks`, and it lies in the file of its theme in
# tests/nightly/. It runs in a process group, of which nothing outlives it.
# Python comes from ENCODERD_TEST_PYTHON (tests/run.sh makes one in .cache/venv).
set -uo pipefail
unset CDPATH
cd "$(dirname "$0")/.." || exit 1

checks=(gpu_script_kills gpu_script_host bundle architectures clang arm64 fuzz
  asan tsan coverage simulation rounds bounds soak container wheel deb source restarts rotations prometheus dashboard languages integrations tokenizers settings
  envoy ray spark)
python=${ENCODERD_TEST_PYTHON:-$PWD/.cache/venv/bin/python}
limit=${ENCODERD_CHECK_LIMIT:-3h}
if [[ ${1-} == --one ]]; then  # called from below: --one CHECK WORK
  work=$3
else
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
fi

# verdict BOUND FIGURE COMMAND...: a row of the table; passed if COMMAND is.
verdict() {
  local bound=$1 figure=$2
  shift 2
  if "$@"; then
    row "$bound" "$figure" passed
  else
    row "$bound" "$figure" FAILED
  fi
}

# row BOUND FIGURE VERDICT: one line, whatever the figure holds.
row() {
  local figure=${2//$'\t'/ }
  printf '%s\t%s\t%s\t%s\n' "$check" "$1" "${figure//$'\n'/; }" "$3" \
    >> "$work/table"
}

# build_programs PRESET TARGET...: programs in build/PRESET/bin. Prints the end of
# its log when that fails.
build_programs() {
  local preset=$1 log=$work/build_programs.log
  shift
  cmake --preset "$preset" > "$log" 2>&1 &&
    cmake --build "build/$preset" --target "$@" >> "$log" 2>&1 && return
  tail -n 40 "$log" >&2
  return 1
}

# The Python client as its users have it, once, in $work/client/site.
install_client() {
  local log=$work/install_client.log
  [[ -d $work/client/site ]] && return
  ENCODERD_TEST_PYTHON=$python tests/integration/client_programs/install.sh \
    "$PWD" "$work/client" > "$log" 2>&1 && return
  tail -n 30 "$log" >&2
  return 1
}

# The model of ENCODERD_TEST_MODEL, fetched if it names none.
fetch_model() {
  [[ -n ${ENCODERD_TEST_MODEL-} ]] ||
    ENCODERD_TEST_MODEL=$(deploy/fetch-model.sh) || return
  export ENCODERD_TEST_MODEL
}

for part in gpu builds server clients fleet packages; do
  # shellcheck source=/dev/null
  source "tests/nightly/$part.sh"
done

if [[ ${1-} == --list ]]; then
  printf '%s\n' "${checks[@]}"
  exit 0
fi
if [[ ${1-} == --one ]]; then
  check=$2
  "check_$check" < /dev/null
  exit
fi
if [[ $# -gt 0 ]]; then
  for check in "$@"; do
    if ! declare -F "check_$check" > /dev/null; then
      echo "nightly.sh: no check '$check'; available: ${checks[*]}" >&2
      exit 2
    fi
  done
  checks=("$@")
fi
if ! command -v "$python" > /dev/null; then
  echo "nightly.sh: no $python; tests/run.sh creates it" >&2
  exit 2
fi

ended=  # the last check that is over
# finish: ends what runs, and prints the table of what has ended. A check is the
# only job in the background: $! names it from its first moment on.
finish() {
  if [[ ${!-} != "$ended" ]]; then
    # Until it runs timeout, it is a copy of this shell, without a group.
    while kill -0 "$!" && ! kill -0 -- "-$!"; do sleep 0.01; done 2> /dev/null
    end_group
  fi
  {
    printf 'check\tbound\tfigure\tverdict\n'
    cat "$work/table"
  } | awk -F '\t' '{ printf "%-18s  %-22s  %-60s  %s\n", $1, $2, $3, $4 }'
  rm -rf "$work"
}
# end_group: ends the check, and what it has left behind; 5 s to clean up.
end_group() {
  local group=-$! i
  kill -TERM -- "$group" 2> /dev/null
  for ((i = 0; i < 50; i++)); do
    kill -0 -- "$group" 2> /dev/null || return
    sleep 0.1
  done
  kill -KILL -- "$group" 2> /dev/null
}
touch "$work/table"
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

for check in "${checks[@]}"; do
  echo "nightly.sh: $check" >&2
  before=$(wc -l < "$work/table")
  started=$SECONDS
  # timeout makes a process group.
  timeout --kill-after=1m "$limit" "$PWD/tests/nightly.sh" --one "$check" \
    "$work" &
  wait "$!"
  code=$?
  end_group
  ended=$!
  if [[ $code -ne 0 || $(wc -l < "$work/table") == "$before" ]]; then
    head -n "$before" "$work/table" > "$work/rows"
    mv "$work/rows" "$work/table"
    row "exit 0 within $limit" "exit $code after $((SECONDS - started)) s" FAILED
  fi
  tail -n +$((before + 1)) "$work/table" >&2
done
# A row may be lost, as on a full disk: each check has one, and it passed.
told=$(cut -f 1 "$work/table")
if [[ $told != "$(printf '%s\n' "${checks[@]}")" ]]; then
  echo "nightly.sh: rows are lost or repeated; the table has: ${told//$'\n'/ }" >&2
  exit 1
fi
[[ $(cut -f 4 "$work/table" | sort -u) == passed ]]
