# shellcheck shell=bash
# Checks of nightly.sh with several servers and the programs that others put in
# front of them. Sourced, not run.
: "${work:?nightly.sh sets it}" "${python:?nightly.sh sets it}"

# own_packages NAME: a folder with what tests/integration/NAME/requirements.txt
# names, for PYTHONPATH; its programs are in bin.
own_packages() {
  "$python" -m pip install --quiet --disable-pip-version-check \
    --target "$work/packages/$1" \
    -r "tests/integration/$1/requirements.txt" >&2
}

# A real Envoy over two servers: even shares over a minute; servers killed and
# restarted in turn under load of callers that try each call once.
check_envoy() {
  touch "$work/envoy"
  build_programs dev encoderd_fake_server && install_client &&
    own_packages envoy &&
    PYTHONPATH=$work/client/site "$python" \
      tests/integration/envoy/envoy_live.py --programs=build/dev/bin \
      --envoy="$work/packages/envoy/envoy/_bin/envoy" --rounds=20 \
      --seconds=60 > "$work/envoy"
  local code=$?
  verdict "5 % off a half; 0 lost" "$(tail -n 1 "$work/envoy")" \
    test "$code" -eq 0
}

# engine_check NAME: client/examples/embed_NAME.py over real servers, in an
# environment that both engines share.
engine_check() {
  local name=$1
  touch "$work/$name"
  if [[ ! -d $work/engines ]]; then
    python3 -m venv "$work/engines" &&
      "$work/engines/bin/pip" install --quiet --disable-pip-version-check \
        -c tests/requirements.txt \
        -r tests/integration/engines/requirements.txt >&2
  fi
  build_programs dev encoderd encoderd_fake_server && install_client &&
    fetch_model &&
    PYTHONPATH=$work/client/site \
      "$work/engines/bin/python" \
      tests/integration/engines/engines_live.py "$name" \
      --programs=build/dev/bin > "$work/$name"
  local code=$?
  verdict "every row once" "$(tail -n 1 "$work/$name")" test "$code" -eq 0
}

check_ray() { engine_check ray; }

check_spark() { engine_check spark; }
