#!/usr/bin/env bash
# Builds the package encoderd for the release of Debian or Ubuntu that runs
# here: server, encoderctl, and a service for systemd that is not yet started.
# Prints its path and, to standard error, its size.
#
#   deploy/deb.sh [OUT]
#
# OUT is the folder for the package (default: build/deb). Its version has the date
# of the commit, such as 0.1.0-1+git20261128193511~debian12; without git it has
# none. To install it, also over an earlier build of the same commit:
#   apt-get install --reinstall "$(deploy/deb.sh)"
set -euo pipefail
# shellcheck source=deploy/package/build.sh
source "$(dirname "${BASH_SOURCE[0]}")/package/build.sh"
begin "$@"
if ! command -v dpkg-shlibdeps > /dev/null; then
  say "dpkg-shlibdeps is missing; as root:" \
    "apt-get install --no-install-recommends dpkg-dev"
  exit 1
fi

build_programs
work=$(mktemp -d "$out/XXXXXX")  # next to it, so that mv is a rename
trap 'rm -rf "$work"' EXIT
cpack --config build/package/CPackConfig.cmake -G DEB -B "$work" \
  > "$work/log" 2>&1 || {
  cat "$work/log" >&2
  exit 1
}
publish "$work"/encoderd_*.deb
