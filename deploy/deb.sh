#!/usr/bin/env bash
# Builds the package encoderd for the release of Debian or Ubuntu that runs
# here: server, encoderctl, and a service for systemd that is not yet started.
# Prints its path and, to standard error, its size.
#
#   deploy/deb.sh [OUT]
#
# OUT is the folder for the package (default: build/deb). To install it:
#   apt-get install ./encoderd_*.deb
set -euo pipefail
from=$PWD  # what relative paths are relative to
cd "$(dirname "$0")/.."

say() { echo "deb: $*" >&2; }

if [[ $# -gt 1 || ${1-} == -* ]]; then
  echo "usage: deploy/deb.sh [OUT]" >&2
  exit 2
fi
out=${1:-build/deb}
case ${1-} in '' | /*) ;; *) out=$from/$1 ;; esac
if ! command -v dpkg-shlibdeps > /dev/null; then
  say "dpkg-shlibdeps is missing; as root:" \
    "apt-get install --no-install-recommends dpkg-dev"
  exit 1
fi

say "building the programs (some minutes where nothing is built yet)"
cmake --preset package > /dev/null
cmake --build build/package --parallel "$(nproc)" \
  --target encoderd encoderctl >&2
mkdir -p "$out"
work=$(mktemp -d "$out/XXXXXX")  # next to it, so that mv is a rename
trap 'rm -rf "$work"' EXIT
cpack --config build/package/CPackConfig.cmake -G DEB -B "$work" \
  > "$work/log" 2>&1 || {
  cat "$work/log" >&2
  exit 1
}
package=$(cd "$work" && echo encoderd_*.deb)
rm -f "$out"/encoderd_*.deb
mv "$work/$package" "$out/"
say "$(stat -c %s "$out/$package") bytes"
echo "$out/$package"
