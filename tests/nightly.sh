#!/usr/bin/env bash
# Checks with a bound that take too long for every change; prints one table at
# its end and exits 1 if any of them fails.
#
#   tests/nightly.sh                    # all
#   tests/nightly.sh bundle             # some, by name
#   tests/nightly.sh --list
#
# A check is a function check_NAME that calls `verdict BOUND FIGURE COMMAND...`
# once, last; its name stands in `checks`. Python comes from
# ENCODERD_TEST_PYTHON (tests/run.sh makes one in .cache/venv).
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1

checks=(gpu_script_kills gpu_script_host bundle architectures clang fuzz
  asan tsan coverage simulation rounds bounds soak container wheel deb restarts rotations prometheus dashboard languages tokenizers)
python=${ENCODERD_TEST_PYTHON:-$PWD/.cache/venv/bin/python}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# verdict BOUND FIGURE COMMAND...: a row of the table; passed if COMMAND is.
verdict() {
  local bound=$1 figure=$2
  shift 2
  if "$@"; then
    row "$bound" "$figure" passed
  else
    row "$bound" "$figure" FAILED
  fi
}

row() {
  printf '%s\t%s\t%s\t%s\n' "$check" "$1" "$2" "$3" >> "$work/table"
}

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
  cmake --preset bench > "$work/host.log" &&
    cmake --build build/bench --target engine_bench >> "$work/host.log" &&
    ENCODERD_TEST_ENGINE_BENCH=$PWD/build/bench/bin/engine_bench \
      "$python" tests/integration/gpu_script_test.py -k real_engine \
      > "$work/host" 2>&1
  local code=$?
  [[ $code -eq 0 ]] || tail -n 30 "$work/host" "$work/host.log" >&2
  verdict "exit 0" "exit $code" test "$code" -eq 0
}

# What goes to a machine with a GPU: one architecture, MiniLM in bf16.
check_bundle() {
  local archive=$work/bundle.tar.xz bytes
  deploy/bundle.sh --architecture=90a --model=minilm "$archive" \
    > "$work/bundle.log" 2>&1 || tail -n 20 "$work/bundle.log" >&2
  bytes=$(stat -c %s "$archive" 2> /dev/null || echo 0)
  verdict "under $((60 << 20)) bytes" "$bytes bytes" \
    test "$bytes" -gt 0 -a "$bytes" -lt $((60 << 20))
}

# The kernels for every architecture of a release; tests/run.sh compiles one.
check_architectures() {
  cmake --preset release -DENCODERD_CUDA=ON > "$work/release.log" 2>&1 &&
    cmake --build build/release --target encoderd_cuda \
      >> "$work/release.log" 2>&1
  local code=$?
  [[ $code -eq 0 ]] || tail -n 30 "$work/release.log" >&2
  verdict "exit 0" "exit $code" test "$code" -eq 0
}

# Everything compiles with clang, without a warning.
check_clang() {
  cmake --preset clang > "$work/clang.log" 2>&1 &&
    cmake --build build/clang >> "$work/clang.log" 2>&1
  local code=$?
  [[ $code -eq 0 ]] || tail -n 30 "$work/clang.log" >&2
  verdict "exit 0" "exit $code" test "$code" -eq 0
}

# Every fuzz target for two minutes, beginning with its corpus. Longer runs are
# for people (tests/fuzz/README.md).
check_fuzz() {
  local code=0 executions=0 name program
  cmake --preset fuzz > "$work/fuzz.log" 2>&1 &&
    cmake --build build/fuzz >> "$work/fuzz.log" 2>&1 || code=1
  for program in build/fuzz/bin/*_fuzz; do
    name=$(basename "$program" _fuzz)
    mkdir -p "$work/fuzz/$name"
    "$program" -max_total_time=120 -timeout=10 -rss_limit_mb=2048 \
      -print_final_stats=1 -artifact_prefix="$PWD/build/fuzz/" \
      "$work/fuzz/$name" "tests/fuzz/corpus/$name" > "$work/fuzz.$name" 2>&1 || {
      tail -n 60 "$work/fuzz.$name" >&2
      code=1
    }
    executions=$((executions + $(awk '/number_of_executed_units/ {print $2}' \
      "$work/fuzz.$name")))
  done
  [[ $code -eq 0 ]] || tail -n 5 "$work/fuzz.log" >&2
  verdict "0 faults" "$executions executions" test "$code" -eq 0
}

# What takes too long under ASan and UBSan for .ci/run: whole models on the
# emulated card, its schedules, many batches.
check_asan() {
  local log=$work/asan.log code
  local tests="batch_invariance_test cuda_full_batch_test cuda_schedule_test cuda_whole_model_test"
  ENCODERD_PRESET=asan ENCODERD_TARGETS=$tests \
    tests/run.sh -R "^(${tests// /|})\$" > "$log" 2>&1
  code=$?
  [[ $code -eq 0 ]] || tail -n 60 "$log" >&2
  verdict "0 reports" "$(grep -E 'tests (passed|failed)' "$log")" \
    test "$code" -eq 0
}

# Server and C++ client under ThreadSanitizer, which is told what Abseil's
# mutexes order, in gRPC too (tests/support/tsan_abseil.cc). Programs started
# by a test are left out: they are not told.
check_tsan() {
  local log=$work/tsan.log code tests
  tests=$(cmake --preset tsan-server > "$log" 2>&1 &&
    ctest --test-dir build/tsan-server -N |
    grep -oE '(server|rpc|api|observe|security|net|client|encoderctl)[a-z_]*_test$' |
      grep -vE '^server_(process|model)_test$' | paste -sd ' ')
  ENCODERD_PRESET=tsan-server ENCODERD_TARGETS=$tests tests/run.sh \
    -R "^(${tests// /|})\$" > "$log" 2>&1
  code=$?
  [[ $code -eq 0 ]] || tail -n 60 "$log" >&2
  verdict "0 reports" "$(grep -E 'tests (passed|failed)' "$log")" \
    test "$code" -eq 0
}

# How much of what reports an error the suite runs.
check_coverage() {
  local log=$work/coverage.log code
  find build/coverage -name '*.gcda' -delete 2> /dev/null
  ENCODERD_PRESET=coverage tests/run.sh -LE 'lint|golden|cuda' \
    -E 'tokenizer_(differential|byte_pair|unigram)|gpu_script|client_languages' \
    > "$log" 2>&1 || tail -n 40 "$log" >&2
  python3 tests/coverage/error_lines.py --build build/coverage \
    > "$work/error_lines"
  code=$?
  cat "$work/error_lines" >&2
  verdict "at least 90 %" "$(tail -n 1 "$work/error_lines")" test "$code" -eq 0
}

# The queue's simulation: a million random schedules, each in virtual time.
check_simulation() {
  local log=$work/simulation.log code
  cmake --preset dev > "$work/simulation.build" 2>&1 &&
    cmake --build build/dev --target pipeline_simulation_test \
      >> "$work/simulation.build" 2>&1 &&
    ENCODERD_SCHEDULES=1000000 build/dev/bin/pipeline_simulation_test \
      > "$log" 2>&1
  code=$?
  [[ $code -eq 0 ]] || tail -n 20 "$work/simulation.build" "$log" >&2
  verdict "1000000 schedules, 0 faults" \
    "$(grep -oE '[0-9]+ schedules.*' "$log" | head -n 1 | cut -c1-60)" \
    test "$code" -eq 0
}

# What happens at a random moment, a hundred times: TERM under the load of 200
# callers, kill -9 and a new start; and 10,000 cancels.
check_rounds() {
  local log=$work/rounds.log code
  cmake --preset dev > "$work/rounds.build" 2>&1 &&
    cmake --build build/dev --target server_process_test server_queue_test \
      encoderd_fake_server >> "$work/rounds.build" 2>&1 &&
    ENCODERD_TEST_ROUNDS=100 build/dev/bin/server_process_test \
      --gtest_filter='*TermUnderLoad*:*KillNine*' > "$log" 2>&1 &&
    ENCODERD_TEST_ROUNDS=10000 build/dev/bin/server_queue_test \
      --gtest_filter='*CancelsAtAnyMoment*' >> "$log" 2>&1
  code=$?
  [[ $code -eq 0 ]] || tail -n 40 "$work/rounds.build" "$log" >&2
  verdict "100 rounds, 0 lost" "$(grep -oE 'PASSED.*' "$log" | paste -sd ' ')" \
    test "$code" -eq 0
}

# The server outside a container, and the Python client, for the next two.
programs_and_client() {
  if [[ -z ${ENCODERD_TEST_MODEL-} ]]; then
    ENCODERD_TEST_MODEL=$(deploy/fetch-model.sh) || return
    export ENCODERD_TEST_MODEL
  fi
  [[ -d $work/client/site ]] && return
  if ! { cmake --preset bench &&
    cmake --build build/bench --target encoderd encoderctl &&
    ENCODERD_TEST_PYTHON=$python tests/integration/client_programs/install.sh \
      "$PWD" "$work/client"; } > "$work/programs.log" 2>&1; then
    tail -n 30 "$work/programs.log" >&2
    return 1
  fi
}

# python_check NAME ARGUMENT...: a program of tests/integration/container; its
# lines about figures go to $work/NAME.
python_check() {
  local name=$1
  shift
  PYTHONPATH=$work/client/site ENCODERD_TEST_PROGRAMS=$PWD/build/bench/bin \
    "$python" "tests/integration/container/$name.py" "$@" \
    > "$work/$name" 2> "$work/$name.log"
  local code=$?
  [[ $code -eq 0 ]] || tail -n 60 "$work/$name.log" >&2
  return "$code"
}

# The image: contents, size, bits, rights, TERM under load.
check_container() {
  touch "$work/container_test"
  deploy/install-deps.sh --containers && programs_and_client &&
    python_check container_test
  local code=$?
  verdict "under 105 MB, 0 faults" "$(paste -sd ';' "$work/container_test")" \
    test "$code" -eq 0
}

# package_check NAME: a program of tests/integration/packages, likewise.
package_check() {
  touch "$work/$1"
  [[ -n ${ENCODERD_TEST_MODEL-} ]] ||
    ENCODERD_TEST_MODEL=$(deploy/fetch-model.sh) || return
  export ENCODERD_TEST_MODEL
  deploy/install-deps.sh --containers &&
    "$python" "tests/integration/packages/$1.py" \
      > "$work/$1" 2> "$work/$1.log"
  local code=$?
  [[ $code -eq 0 ]] || tail -n 60 "$work/$1.log" >&2
  return "$code"
}

# The wheel in a bare Debian: contents, size, bits, commands.
check_wheel() {
  package_check wheel_test
  local code=$?
  verdict "36 MB, 60 s, 0 faults" "$(cat "$work/wheel_test")" \
    test "$code" -eq 0
}

# The Debian package in a bare Debian, and its service under a real systemd.
check_deb() {
  package_check deb_test
  local code=$?
  verdict "0 faults" "$(cat "$work/deb_test")" test "$code" -eq 0
}

# 100 restarts by TERM under load, callers with the shipped service config.
check_restarts() {
  touch "$work/restarts"
  programs_and_client && python_check restarts 100
  local code=$?
  verdict "0 lost" "$(cat "$work/restarts")" test "$code" -eq 0
}

# What has a bound in seconds or bytes: start, leaving, a lost device, masses of
# callers and hostile ones.
check_bounds() {
  touch "$work/bounds"
  programs_and_client && cmake --preset dev > "$work/bounds.log" 2>&1 &&
    cmake --build build/dev --target encoderd encoderd_fake_server \
      >> "$work/bounds.log" 2>&1 &&
    PYTHONPATH=$work/client/site "$python" tests/integration/bounds.py \
      --programs=build/dev/bin > "$work/bounds"
  local code=$?
  cat "$work/bounds" >&2
  verdict "0 missed" "$(tail -n 1 "$work/bounds")" test "$code" -eq 0
}

# Memory over ten minutes of load; a server that leaks must be found in one.
check_soak() {
  local code=1 planted=1
  touch "$work/soak" "$work/leak"
  if programs_and_client &&
    cmake --build build/bench --target encoderd encoderd_fake_server \
      grpc_bench > "$work/soak.log" 2>&1; then
    "$python" tests/bench/soak.py --bin=build/bench/bin \
      --model="$ENCODERD_TEST_MODEL" --minutes=10 > "$work/soak"
    code=$?
    "$python" tests/bench/soak.py --bin=build/bench/bin --minutes=1 \
      --program=encoderd_fake_server --model=fake=hashing:1 --lengths 16 \
      > "$work/leak"
    planted=$?
    cat "$work/soak" "$work/leak" >&2
  fi
  verdict "2 %; the leak is found" \
    "$(tail -n 1 "$work/soak"); leak: $(tail -n 1 "$work/leak")" \
    test "$code" -eq 0 -a "$planted" -eq 3  # soak.py: it grew
}

# A certificate replaced 100 times under load.
check_rotations() {
  touch "$work/rotations"
  programs_and_client && cmake --preset dev > "$work/rotations.log" 2>&1 &&
    cmake --build build/dev --target encoderd_fake_server \
      >> "$work/rotations.log" 2>&1 &&
    PYTHONPATH=$work/client/site "$python" \
      tests/integration/client_programs/rotations.py \
      --programs=build/dev/bin 100 > "$work/rotations"
  local code=$?
  verdict "0 failed" "$(cat "$work/rotations")" test "$code" -eq 0
}

# The programs that the next two watch, and what else these take: `monitored`.
build_monitored() {
  local model=${ENCODERD_TEST_MODEL-} log=$work/watch.log
  [[ -n $model ]] || model=$(deploy/fetch-model.sh) || return
  monitored=(--programs=build/dev/bin --model="$model")
  if ! { cmake --preset dev &&
    cmake --build build/dev --target encoderd encoderctl \
      encoderd_fake_server; } > "$log" 2>&1; then
    tail -n 30 "$log" >&2
    return 1
  fi
}

# A real Prometheus: every alert over a server in the trouble that earns it,
# none over a healthy one; and quantiles beside those that callers measured.
check_prometheus() {
  local alerts=1 quantiles=1
  touch "$work/alerts" "$work/quantiles"
  if build_monitored; then
    "$python" tests/integration/prometheus/alerts_live.py "${monitored[@]}" \
      > "$work/alerts"
    alerts=$?
    "$python" tests/integration/prometheus/quantiles_live.py \
      "${monitored[@]}" > "$work/quantiles"
    quantiles=$?
    cat "$work/alerts" "$work/quantiles" >&2
  fi
  verdict "all alerts; 10 % off" \
    "$(sed -n '$s/ earned.*//p' "$work/alerts"); $(tail -n 1 "$work/quantiles")" \
    test "$alerts" -eq 0 -a "$quantiles" -eq 0
}

# The dashboard's queries over a real Prometheus, as a picture to look at.
check_dashboard() {
  local code picture=build/dashboard.png
  rm -f "$picture"
  touch "$work/dashboard"
  build_monitored && python3 -m venv "$work/draw" &&
    "$work/draw/bin/pip" install --quiet --disable-pip-version-check \
      -r tests/requirements.txt \
      -r tests/integration/prometheus/requirements.txt &&
    "$work/draw/bin/python" tests/integration/prometheus/draw_dashboard.py \
      "${monitored[@]}" --out="$picture" > "$work/dashboard"
  code=$?
  [[ ! -e $picture ]] || echo "nightly.sh: look at $picture" >&2
  verdict "every panel has data" "$(cat "$work/dashboard")" test "$code" -eq 0
}

# client/examples in Go and Rust, by the commands of the READMEs, in a root
# folder of Debian 13, which .cache keeps; needs root and debootstrap.
check_languages() {
  local chroot=$PWD/.cache/debian13 log=$work/languages.log
  tests/integration/client_programs/debian13.sh "$chroot" > "$log" 2>&1 &&
    cmake --preset dev >> "$log" 2>&1 &&
    cmake --build build/dev --target encoderd >> "$log" 2>&1 &&
    ENCODERD_TEST_CHROOT=$chroot ENCODERD_TEST_PYTHON=$python \
      ENCODERD_TEST_MODEL=${ENCODERD_TEST_MODEL:-$(deploy/fetch-model.sh)} \
      ctest --test-dir build/dev --no-tests=error --verbose \
      -R '^client_(python_install|languages)$' >> "$log" 2>&1
  local code=$? figure
  [[ $code -eq 0 ]] || tail -n 40 "$log" >&2
  figure=$(grep -oE '[0-9]+ passed.*' "$log" | tail -n 1)
  verdict "9 passed" "${figure:-none passed}" \
    test "$code" -eq 0 -a "${figure%% *}" = 9
}

# Every text of the corpus in every comparison; tests/run.sh takes a tenth of
# it in most.
check_tokenizers() {
  local log=$work/tokenizers.log
  cmake --preset dev > "$log" 2>&1 &&
    cmake --build build/dev --target tokenize_lines >> "$log" 2>&1 &&
    ENCODERD_TEST_CORPUS=whole ENCODERD_TEST_PYTHON=$python \
      ENCODERD_TEST_MODEL=${ENCODERD_TEST_MODEL:-$(deploy/fetch-model.sh)} \
      ctest --test-dir build/dev --no-tests=error --verbose \
      -R '^tokenizer_(differential|byte_pair|unigram)$' >> "$log" 2>&1
  local code=$?
  [[ $code -eq 0 ]] || tail -n 40 "$log" >&2
  verdict "0 differences" "$(grep -oE '[0-9]+ passed' "$log" | paste -sd ' ')" \
    test "$code" -eq 0
}

if [[ ${1-} == --list ]]; then
  printf '%s\n' "${checks[@]}"
  exit 0
fi
if [[ $# -gt 0 ]]; then
  for check in "$@"; do
    if ! declare -F "check_$check" > /dev/null; then
      echo "nightly.sh: no check '$check'; available: ${checks[*]}" >&2
      exit 2
    fi
  done
  checks=("$@")
fi

for check in "${checks[@]}"; do
  echo "nightly.sh: $check" >&2
  before=$(cat "$work/table" 2> /dev/null)
  "check_$check" < /dev/null
  if [[ $(cat "$work/table" 2> /dev/null) == "$before" ]]; then
    row "-" "the check gave no figure" FAILED
  fi
done
{
  printf 'check\tbound\tfigure\tverdict\n'
  cat "$work/table"
} | awk -F '\t' '{ printf "%-18s  %-22s  %-60s  %s\n", $1, $2, $3, $4 }'
! grep -q $'\tFAILED$' "$work/table"
