#!/usr/bin/env bash
# Tests and measures encoderd on a machine with a GPU: op tests, whole models
# against torch, the same bits in any company, compute-sanitizer, algorithms
# kept from start to start, a served model over loopback, the benchmark. Needs no
# network and no gRPC: only python3 with torch and transformers, and the bundle
# of deploy/bundle.sh, from which it runs:
#
#   tar xf encoderd-bundle.tar.gz && encoderd-bundle/tests/gpu.sh
#
#   --out=FOLDER      where gpu.json, gpu.md and the logs go (default gpu-report)
#   --model=FOLDER    a real model for the goldens, beside random ones
#   --device=DEVICE   cuda (default), cuda:N; cpu: what of it runs without a GPU
#   --quick           small counts, two repeats: to see that everything runs
#
# Exit 0: everything that ran passed; 1: something failed. What could not run is
# named in the report. Under 10 minutes on one H200.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
python=${ENCODERD_TEST_PYTHON:-python3}

if [[ ! -x $root/bin/engine_bench ]]; then
  echo "gpu.sh: no programs in $root/bin: run it from a bundle of" \
    "deploy/bundle.sh" >&2
  exit 1
fi
if ! "$python" -c 'import torch, transformers' 2> /dev/null; then
  echo "gpu.sh: $python needs torch and transformers" >&2
  exit 1
fi

# cuBLAS comes with torch, or from the system's own folders.
libraries=$root/lib
while read -r folder; do
  libraries=$libraries:$folder
done < <("$python" - << 'PYTHON'
import glob, os, site, sys
for base in {*site.getsitepackages(), *sys.path}:
    for path in glob.glob(os.path.join(base, "nvidia", "*", "lib",
                                       "libcublasLt.so.*")):
        print(os.path.dirname(path))
PYTHON
)
export ENCODERD_LIBRARY_PATH=$libraries
exec "$python" "$root/tests/bench/gpu.py" --root="$root" "$@"
