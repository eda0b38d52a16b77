#!/usr/bin/env bash
# Fetches the headers of CUTLASS 4.2.0 (BSD-3-Clause) and prints the include
# folder.
#
#   deploy/fetch-cutlass.sh [DIR]
#
# DIR defaults to ${XDG_CACHE_HOME:-~/.cache}/encoderd/cutlass-4.2.0, where the
# build looks (deploy/cmake/EncoderdCutlass.cmake). It then holds include/ and
# LICENSE.txt. The headers come inside a Python wheel (fetch-wheel.sh); wheel
# and headers are checked against the SHA-256 sums below.
set -euo pipefail
# shellcheck source=deploy/fetch-wheel.sh
source "$(dirname "${BASH_SOURCE[0]}")/fetch-wheel.sh"

headers_sha256=16eeaa3fdf639ba772d1f6dbc9d85cba849232a63b1d213d0e37d868ee49c443

# sum_of_headers DIR: the checksum of the list of all headers and their sums.
sum_of_headers() {
  (cd "$1/include" 2> /dev/null &&
    find . -type f -print0 | LC_ALL=C sort -z | xargs -0 sha256sum |
    sha256sum | cut -d' ' -f1)
}

# All headers and no others, the license, and no links: links have no checksum.
holds() {
  [[ -s $1/LICENSE.txt && -z $(find "$1/" ! -type f ! -type d -print -quit) &&
    $(sum_of_headers "$1") == "$headers_sha256" ]]
}

pick() {
  mkdir "$2"
  mv "$1/cutlass_library/source/include" "$2/include"
  mv "$1/nvidia_cutlass-4.2.0.0.dist-info/licenses/LICENSE.txt" "$2/"
}

dir=$(folder cutlass-4.2.0 "$@")
fetch "$dir" "the headers" "6 MB" nvidia-cutlass==4.2.0.0 \
  nvidia_cutlass-4.2.0.0-py3-none-any.whl \
  f9599ada45c7bcb6bf53f7d3f0a7d154183e53451c01bfa59eecd37dd4a693f6
echo "$dir/include"
