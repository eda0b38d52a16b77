#!/usr/bin/env bash
# Fetches the headers of CUTLASS 4.2.0 (BSD-3-Clause) and prints the folder to
# include them from.
#
#   deploy/fetch-cutlass.sh [DIR]
#
# DIR defaults to ${XDG_CACHE_HOME:-~/.cache}/encoderd/cutlass-4.2.0, where the
# build looks (deploy/cmake/EncoderdCutlass.cmake). It then holds include/ and
# LICENSE.txt. The headers come inside a Python wheel, got with pip from the
# index that pip is set up with. Wheel and headers are checked against the
# SHA-256 sums below. When DIR already holds the headers nothing is fetched and
# no network is used. The folder appears whole or not at all.
set -euo pipefail

package=nvidia-cutlass
version=4.2.0.0
wheel=nvidia_cutlass-4.2.0.0-py3-none-any.whl
wheel_sha256=f9599ada45c7bcb6bf53f7d3f0a7d154183e53451c01bfa59eecd37dd4a693f6
headers_sha256=16eeaa3fdf639ba772d1f6dbc9d85cba849232a63b1d213d0e37d868ee49c443
include_in_wheel=cutlass_library/source/include
licence_in_wheel=nvidia_cutlass-4.2.0.0.dist-info/licenses/LICENSE.txt

if [[ $# -gt 1 || ${1-} == -* ]]; then
  echo "usage: deploy/fetch-cutlass.sh [DIR]" >&2
  exit 2
fi
dir=${1:-${XDG_CACHE_HOME:-$HOME/.cache}/encoderd/cutlass-4.2.0}

say() { echo "fetch-cutlass: $*" >&2; }

# has_sha256 FILE SUM
has_sha256() { echo "$2  $1" | sha256sum --check --status 2> /dev/null; }

# sum_of_headers DIR: of the list of all headers and their own sums.
sum_of_headers() {
  (cd "$1/include" 2> /dev/null &&
    find . -type f -print0 | LC_ALL=C sort -z | xargs -0 sha256sum |
    sha256sum | cut -d' ' -f1)
}

# is_cutlass DIR: every header is there as it was published, and the licence.
is_cutlass() {
  [[ -s $1/LICENSE.txt && $(sum_of_headers "$1") == "$headers_sha256" ]]
}

if is_cutlass "$dir"; then
  echo "$dir/include"
  exit 0
fi
if [[ -e $dir ]]; then
  say "$dir exists but does not hold the headers (LICENSE.txt missing, or a"
  say "header missing or changed). Remove it, or name another folder."
  exit 1
fi

if ! python3 -m pip --version > /dev/null 2>&1; then
  "$(dirname "$0")/install-deps.sh"
fi

mkdir -p "$(dirname "$dir")"
work=$(mktemp -d "$dir.XXXXXX")  # beside DIR, so that the rename is atomic
trap 'rm -rf "$work"' EXIT

say "fetching the Python package $package $version (6 MB) with pip"
python3 -m pip download --quiet --disable-pip-version-check --no-deps \
  --only-binary :all: --dest "$work" "$package==$version" >&2
if ! has_sha256 "$work/$wheel" "$wheel_sha256"; then
  say "$wheel has SHA-256 $(sha256sum "$work/$wheel" | cut -d' ' -f1),"
  say "expected $wheel_sha256"
  exit 1
fi
python3 -m zipfile --extract "$work/$wheel" "$work/unpacked"
mkdir "$work/cutlass"
mv "$work/unpacked/$include_in_wheel" "$work/cutlass/include"
mv "$work/unpacked/$licence_in_wheel" "$work/cutlass/LICENSE.txt"
if ! is_cutlass "$work/cutlass"; then
  say "$wheel does not hold the headers in $include_in_wheel"
  exit 1
fi
# Another run may have been first: then its folder stays.
if ! mv -T "$work/cutlass" "$dir" 2> /dev/null && ! is_cutlass "$dir"; then
  say "cannot move the headers to $dir"
  exit 1
fi
echo "$dir/include"
