#!/usr/bin/env bash
# Builds with CUDA and packs programs and the shared libraries that they need
# into one archive for a machine with a GPU and nothing else; tests/gpu.sh in it
# tests and measures there.
#
#   deploy/bundle.sh [ARCHIVE.tar.gz]     default: build/encoderd-bundle.tar.gz
#
# Left out: cuBLAS and the driver, which the other machine has (a PyTorch for
# the same major version of CUDA brings cuBLAS), and glibc, which must not be
# older there than here. At most 60 MiB.
set -euo pipefail
cd "$(dirname "$0")/.."

if [[ $# -gt 1 || ${1-} == -* ]]; then
  echo "usage: deploy/bundle.sh [ARCHIVE.tar.gz]" >&2
  exit 2
fi
archive=${1:-build/encoderd-bundle.tar.gz}
max_bytes=$((60 << 20))
programs=(encoderd encoderctl engine_bench grpc_bench
  gpu_row_op_test gpu_attention_op_test gpu_fp8_op_test gpu_whole_model_test
  gpu_cutlass_op_test)

say() { echo "bundle: $*" >&2; }

cutlass=$(deploy/fetch-cutlass.sh)
cmake --preset bundle -DENCODERD_CUTLASS=ON \
  -DENCODERD_CUTLASS_INCLUDE="$cutlass" > /dev/null
cmake --build build/bundle --parallel "$(nproc)" --target "${programs[@]}" >&2

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
bundle=$work/encoderd-bundle
mkdir -p "$bundle/bin" "$bundle/lib" "$bundle/tests/bench" \
  "$bundle/tests/golden"
for program in "${programs[@]}"; do
  strip -o "$bundle/bin/$program" "build/bundle/bin/$program"
done
cp tests/gpu.sh "$bundle/tests/"
cp tests/bench/gpu{,_latency,_run,_torch}.py \
  tests/bench/fp8_error.py "$bundle/tests/bench/"
cp tests/golden/sentences.txt "$bundle/tests/golden/"
cp LICENSE "$bundle/"
cp "$cutlass/../LICENSE.txt" "$bundle/LICENSE.cutlass"

# What a program loads, less what every machine or the driver brings.
ldd "$bundle"/bin/* | sed -n 's/.*=> \(\/[^ ]*\) .*/\1/p' | sort -u |
  grep -Ev '/(ld-linux|libc|libm|libdl|librt|libpthread|libresolv)[-.][^/]*$' |
  grep -Ev '/lib(cuda|cublas|cublasLt|nvidia)[^/]*$' > "$work/libraries"
if ldd "$bundle"/bin/* | grep "not found" >&2; then
  say "a library is missing on this machine"
  exit 1
fi
while read -r library; do
  strip --strip-unneeded -o "$bundle/lib/$(basename "$library")" "$library"
done < "$work/libraries"

{
  echo "commit $(git rev-parse HEAD 2> /dev/null || echo unknown)"
  echo "glibc $(ldd --version | sed -n '1s/.* //p')"
  echo "cuda $(nvcc --version | sed -n 's/.*release \([0-9.]*\),.*/\1/p')"
} > "$bundle/VERSION"

mkdir -p "$(dirname "$archive")"
tar -C "$work" -c encoderd-bundle | gzip -9 > "$archive"
bytes=$(stat -c %s "$archive")
say "$archive: $bytes bytes, $(wc -l < "$work/libraries") libraries"
if [[ $bytes -gt $max_bytes ]]; then
  say "over $max_bytes bytes; the largest files:"
  (cd "$bundle" && du -ab bin lib | sort -rn | head -8) >&2
  exit 1
fi
