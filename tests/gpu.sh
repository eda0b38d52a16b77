#!/usr/bin/env bash
# Tests and measures encoderd on a machine with a GPU: op tests, whole models
# against torch, the same bits in any company, compute-sanitizer, algorithms
# kept from start to start, what the card can do, the engine beside its peers, a
# served model over loopback. Needs no network and no gRPC: only python3 with
# numpy (torch and transformers for references and peers) and the bundle of
# deploy/bundle.sh, from which it runs:
#
#   tar xf encoderd-bundle.tar.xz && encoderd-bundle/tests/gpu.sh --run=a
#
#   --run=a           correctness, same bits in any company, sanitizers
#   --run=b           speed of MiniLM's shape and BERT-base's, op by op, each
#                     product alone, what the card itself can do
#   --run=c           speed of BERT-large, all models served, latency
#   --only=LIST       of correct, speed, serve, latency
#   --models=LIST     of minilm, e5-small, bert-base, bert-large
#   --deadline=N      seconds (default 540); what does not fit is left out and
#                     named
#   --out=FOLDER      gpu.json, gpu.md and logs.tar.gz (default gpu-report);
#                     replaced after every row, valid whenever this is killed
#   --model=FOLDER    a real model for the goldens (default: the bundle's own)
#   --device=DEVICE   cuda (default), cuda:N; cpu: what of it runs without a GPU
#   --quick           small counts, two repeats: to see that everything runs
#   --patience=N      multiplies every time limit but the deadline
#   --tiny            random models of one layer: to test this script
#
# Exit 0: everything that ran passed; 1: something failed, and the report says
# what; 2: asked wrongly.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
python=${ENCODERD_TEST_PYTHON:-python3}

if ! "$python" -c 'import numpy' 2> /dev/null; then
  echo "gpu.sh: $python needs numpy; ENCODERD_TEST_PYTHON names another" >&2
  exit 1
fi
export PYTHONUNBUFFERED=1
exec "$python" "$root/tests/bench/gpu/main.py" --root="$root" "$@"
