#!/usr/bin/env bash
# Builds with CUDA and packs programs, the shared libraries that they need and a
# model into one archive for a machine with a GPU and nothing else; tests/gpu.sh
# in it tests and measures there. licenses/ in it has those of the libraries.
#
#   deploy/bundle.sh [FLAGS] [ARCHIVE]
#
#   ARCHIVE               NAME.tar.xz (default: build/encoderd-bundle.tar.xz) or
#                         NAME.tar.gz, a third larger
#   --architecture=LIST   machine code for these CUDA architectures alone, as
#                         90a or 80,90a; default: all that the build knows
#   --model=MODEL         minilm (default: deploy/fetch-model.sh brings it), a
#                         model folder, or none; its weights are rounded to bf16
#
# Left out: cuBLAS and the driver, which the other machine has (a PyTorch for
# the same major version of CUDA brings cuBLAS), and glibc, which must not be
# older there than here. Under 60 MiB, or it exits 1. Where the other machine has
# no xz: python3 -m tarfile -e encoderd-bundle.tar.xz
set -euo pipefail
from=$PWD  # what relative paths are relative to
unset CDPATH
cd "$(dirname "$0")/.."
# shellcheck source=deploy/package/build.sh
source deploy/package/build.sh
date_files

usage() {
  say "usage: deploy/bundle.sh [--architecture=LIST]" \
    "[--model=FOLDER|minilm|none] [NAME.tar.xz|NAME.tar.gz]"
  exit 2
}

architectures=
model=minilm
archive=
for argument in "$@"; do
  case $argument in
    --architecture=*) architectures=${argument#*=} ;;
    --model=?*) model=${argument#*=} ;;
    -* | "") usage ;;
    *)
      [[ -z $archive ]] || usage
      archive=$argument
      ;;
  esac
done
if [[ $* == *--architecture=* && \
  ! $architectures =~ ^[0-9]+[af]?(,[0-9]+[af]?)*$ ]]; then
  say "--architecture=$architectures: expected numbers such as 90a or 80,90a"
  usage
fi
# inside PATH: as the caller means it.
inside() { case $1 in /*) echo "$1" ;; *) echo "$from/$1" ;; esac; }
if [[ $model != minilm && $model != none ]]; then model=$(inside "$model"); fi
if [[ -n $archive ]]; then archive=$(inside "$archive"); fi
if [[ $model != minilm && $model != none && ! -f $model/config.json ]]; then
  say "--model=$model: no such model folder (it has no config.json)"
  usage
fi
archive=${archive:-build/encoderd-bundle.tar.xz}
case $archive in
  *.tar.xz) compress=(xz -6 --threads=0) ;;
  *.tar.gz) compress=(gzip -9 -n) ;;
  *)
    say "$archive: expected a name that ends in .tar.xz or .tar.gz"
    usage
    ;;
esac
max_bytes=$((60 << 20))
programs=(encoderd encoderctl engine_bench grpc_bench card_bench
  gpu_row_op_test gpu_attention_op_test gpu_fp8_op_test gpu_whole_model_test
  gpu_full_batch_test)

options=(-DENCODERD_REVISION="${ENCODERD_REVISION-}" -DENCODERD_CUTLASS=OFF)
if [[ -z $architectures || ,$architectures, == *,90a,* ]]; then
  cutlass=$(deploy/fetch-cutlass.sh)
  options+=(-DENCODERD_CUTLASS=ON
    -DENCODERD_CUTLASS_INCLUDE="$cutlass")
  programs+=(gpu_cutlass_op_test)
else
  say "--architecture=$architectures leaves out the products by CUTLASS:" \
    "they need 90a"
fi
warn_of_changes
if [[ -n $architectures ]]; then
  cmake --preset bundle "${options[@]}" \
    -DCMAKE_CUDA_ARCHITECTURES="${architectures//,/-real;}-real" > /dev/null
else
  cmake --preset bundle "${options[@]}" \
    -UCMAKE_CUDA_ARCHITECTURES > /dev/null
fi
# The programs hold CUDA's runtime, whose license comes with the toolkit, or with
# the Python package that it was unpacked from.
nvcc=$(sed -n 's/^CMAKE_CUDA_COMPILER:[A-Z]*=//p' build/bundle/CMakeCache.txt)
cuda=$(dirname "$(dirname "$(realpath "$nvcc")")")
for cuda_license in "$cuda"/EULA.txt \
  "$cuda"/{dist-info,../..}/nvidia_cuda_runtime-*.dist-info/{,licenses/}License.txt; do
  [[ ! -s $cuda_license ]] || break
done
if [[ ! -s $cuda_license ]]; then
  say "found no license of CUDA's runtime in $cuda: no EULA.txt and no" \
    "nvidia_cuda_runtime-*.dist-info with a License.txt"
  exit 1
fi
cmake --build build/bundle --parallel "$(nproc)" --target "${programs[@]}" >&2

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
bundle=$work/encoderd-bundle
mkdir -p "$bundle/bin" "$bundle/lib" "$bundle/tests/bench/gpu" \
  "$bundle/tests/golden"
for program in "${programs[@]}"; do
  strip -o "$bundle/bin/$program" "build/bundle/bin/$program"
done
cp tests/gpu.sh "$bundle/tests/"
cp tests/bench/gpu/*.py "$bundle/tests/bench/gpu/"
cp tests/bench/fp8_error.py "$bundle/tests/bench/"
cp tests/golden/sentences.txt "$bundle/tests/golden/"
cp LICENSE "$bundle/"
if [[ -n ${cutlass-} ]]; then
  cp "$cutlass/../LICENSE.txt" "$bundle/LICENSE.cutlass"
fi
cp "$cuda_license" "$bundle/LICENSE.cuda"

# What a program loads, less what every machine or the driver brings.
built=("${programs[@]/#/build/bundle/bin/}")  # /tmp may allow no execution
ldd "${built[@]}" | sed -n 's/.*=> \(\/[^ ]*\) .*/\1/p' | sort -u |
  grep -Ev '/(ld-linux|libc|libm|libdl|librt|libpthread|libresolv)[-.][^/]*$' |
  grep -Ev '/lib(cuda|cublas|cublasLt|nvidia)[^/]*$' > "$work/libraries"
if ldd "${built[@]}" | grep "not found" >&2; then
  say "a library is missing on this machine"
  exit 1
fi
while read -r library; do
  strip --strip-unneeded -o "$bundle/lib/$(basename "$library")" "$library"
done < "$work/libraries"
# Of those, of what the programs have compiled in, and of what the tests have.
mapfile -t compiled_in < <(built_in)
xargs -d '\n' deploy/package/bundle_licenses.py "${compiled_in[@]}" \
  --built-in=libgtest-dev "$bundle/licenses" < "$work/libraries"

{
  echo "commit $(revision)"
  echo "glibc $(ldd --version | sed -n '1s/.* //p')"
  echo "cuda $("$nvcc" --version | sed -n 's/.*release \([0-9.]*\),.*/\1/p')"
  echo "architectures ${architectures:-all}"
} > "$bundle/VERSION"

if [[ $model != none ]]; then
  name=$(basename "$(realpath "$model")")
  if [[ $model == minilm ]]; then
    name=all-MiniLM-L6-v2
    model=$(deploy/fetch-model.sh)
  fi
  # gpu.sh takes the one folder below models/.
  python3 deploy/round_weights.py "$model" "$bundle/models/$name" >&2
  echo "model $name, weights rounded to bf16" >> "$bundle/VERSION"
fi

mkdir -p "$(dirname "$archive")"
partial=$archive.$$.partial  # of this run alone
trap 'rm -rf "$work" "$partial"' EXIT
pack "$work" encoderd-bundle | "${compress[@]}" > "$partial"
bytes=$(stat -c %s "$partial")
say "$archive: $bytes bytes, $(wc -l < "$work/libraries") libraries"
if [[ $bytes -gt $max_bytes ]]; then
  say "over $max_bytes bytes; the largest files:"
  (cd "$bundle" && find . -type f -printf '%s %p\n' | sort -rn | head -8) >&2
  exit 1
fi
mv -fT "$partial" "$archive"
