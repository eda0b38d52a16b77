# shellcheck shell=bash
# What goes to a machine with a GPU, for tests/nightly.sh. Sourced, not run.
: "${work:?nightly.sh sets it}" "${python:?nightly.sh sets it}"

# tests/gpu.sh killed at random times: each report is valid JSON, holds every
# row that was announced, and nothing is left running.
check_gpu_script_kills() {
  local count=50
  "$python" tests/integration/gpu_script_bundle.py "$count" \
    > "$work/kills" 2> "$work/kills.log"
  local code=$?
  tail -n 3 "$work/kills.log" >&2
  verdict "$count kills, 0 faults" "$(cut -c1-200 "$work/kills")" \
    test "$code" -eq 0
}

# The whole of tests/gpu.sh with the real engine, without a card.
check_gpu_script_host() {
  touch "$work/host"
  build_programs bench engine_bench &&
    ENCODERD_TEST_ENGINE_BENCH=$PWD/build/bench/bin/engine_bench \
      "$python" tests/integration/gpu_script_test.py -k real_engine \
      > "$work/host" 2>&1
  local code=$? figure
  [[ $code -eq 0 ]] || tail -n 30 "$work/host" >&2
  # No test that is skipped, and not none.
  figure="exit $code; $(grep -oE '^Ran [0-9]+ tests?' "$work/host"); $(
    tail -n 1 "$work/host")"
  verdict "exit 0; OK" "$figure" \
    grep -qxE 'exit 0; Ran [1-9][0-9]* tests?; OK' <<< "$figure"
}

# What goes to a machine with a GPU: one architecture, MiniLM in bf16.
check_bundle() {
  local archive=$work/bundle.tar.xz bytes code
  deploy/bundle.sh --architecture=90a --model=minilm "$archive" \
    > "$work/bundle.log" 2>&1
  code=$?
  [[ $code -eq 0 ]] || tail -n 20 "$work/bundle.log" >&2
  bytes=$(stat -c %s "$archive" 2> /dev/null || echo 0)
  verdict "exit 0, under $((60 << 20)) bytes" "exit $code, $bytes bytes" \
    test "$code" -eq 0 -a "$bytes" -gt 0 -a "$bytes" -lt $((60 << 20))
}

# The kernels for every architecture of a release; tests/run.sh compiles one.
check_architectures() {
  # Not in build/release, which the quick start uses as it is.
  cmake --preset release -B build/architectures -DENCODERD_CUDA=ON \
    > "$work/release.log" 2>&1 &&
    cmake --build build/architectures --target encoderd_cuda \
      >> "$work/release.log" 2>&1
  local code=$?
  [[ $code -eq 0 ]] || tail -n 30 "$work/release.log" >&2
  verdict "exit 0" "exit $code" test "$code" -eq 0
}
