#!/usr/bin/env bash
# Builds the Python wheel that carries the server, encoderctl and the client,
# with the libraries that they load; prints its path and, to standard error, its
# size.
#
#   deploy/wheel.sh [OUT]
#
# OUT is the folder for the wheel (default: build/wheel). For the CPU alone, of
# any x86-64: what needs newer instructions is chosen at run time. auditwheel
# names in the wheel's tag the oldest glibc that has all symbols used: 2.35 where
# Debian 12 builds.
set -euo pipefail
# shellcheck source=deploy/package/build.sh
source "$(dirname "${BASH_SOURCE[0]}")/package/build.sh"
begin "$@"

build_programs
version=$(sed -n 's/^CMAKE_PROJECT_VERSION:STATIC=//p' \
  build/package/CMakeCache.txt)

tools=build/wheel-tools
# Also where Python is another one by now, which does not find the packages.
if ! cmp -s deploy/package/wheel-tools.txt "$tools/wheel-tools.txt" ||
  ! "$tools/bin/python" -m pip --version > /dev/null 2>&1; then
  rm -rf "$tools"
  python3 -m venv "$tools"
  "$tools/bin/pip" install --quiet --disable-pip-version-check \
    -r deploy/package/wheel-tools.txt
  cp deploy/package/wheel-tools.txt "$tools/"
fi
PATH=$PWD/$tools/bin:$PATH

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/programs" "$work/client/python"
for program in encoderd encoderctl; do
  strip -o "$work/programs/$program" "build/package/bin/$program"
done
# A copy, so that nothing that is left of another build gets in.
cp -R proto LICENSE "$work/"
cp client/client_settings.json client/service_config.json "$work/client/"
(cd client/python && cp -R pyproject.toml setup.py README.md encoderd \
  encoderd_programs "$work/client/python/")

ENCODERD_PROGRAMS=$work/programs python -m pip wheel --quiet --no-deps \
  --no-build-isolation --disable-pip-version-check \
  --wheel-dir "$work/plain" "$work/client/python" >&2
auditwheel repair --strip --wheel-dir "$work/repaired" \
  "$work"/plain/encoderd-*.whl > "$work/log" 2>&1 || {
  cat "$work/log" >&2
  say "auditwheel could not bring the libraries in; what it said is above"
  exit 1
}
mapfile -t built_in < <(built_in)
python deploy/package/wheel_licenses.py --version="$version" \
  --revision="$(revision)" "${built_in[@]}" \
  "$work"/repaired/encoderd-*.whl "$work/done" build/package/bin/encoderd \
  build/package/bin/encoderctl >&2

publish "$work"/done/encoderd-*.whl
