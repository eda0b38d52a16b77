#!/usr/bin/env bash
# Tests and measures encoderd on a machine with a GPU: op tests, whole models
# against torch, the same bits in any batch, compute-sanitizer, algorithms
# kept from start to start, what the card can do, the engine and its peers, a
# served model over loopback. Needs no network and no gRPC: only python3 with
# numpy (torch and transformers for references and peers) and the bundle of
# deploy/bundle.sh, from which it runs:
#
#   tar xf encoderd-bundle.tar.xz && encoderd-bundle/tests/gpu.sh --run=a
#
# --help tells every option and exit code (tests/bench/gpu/options.py).
set -euo pipefail
script=$(readlink -f -- "$0")
root=$(CDPATH='' cd -- "$(dirname -- "$script")/.." && pwd)
python=${ENCODERD_TEST_PYTHON:-python3}

refuse() {
  echo "gpu.sh: $*" >&2
  exit 2
}

needs_bundle=yes
for argument in "$@"; do
  [[ $argument != --help && $argument != -h ]] || needs_bundle=no
done
if [[ $needs_bundle == yes && ! -d $root/bin ]]; then
  refuse "$root is not a bundle: it has no bin/. Run deploy/bundle.sh, unpack" \
    "the archive on the machine with a GPU and run its tests/gpu.sh"
fi
if ! command -v "$python" > /dev/null; then
  refuse "no program '$python'; ENCODERD_TEST_PYTHON names another Python"
fi
# Found, not imported: the first report is soon there.
has_numpy='import sys, importlib.util as u; sys.exit(not u.find_spec("numpy"))'
if [[ $needs_bundle == yes ]] && ! "$python" -c "$has_numpy"; then
  refuse "$python needs numpy; ENCODERD_TEST_PYTHON names another Python"
fi
export PYTHONUNBUFFERED=1
exec "$python" "$root/tests/bench/gpu/main.py" --root="$root" "$@"
