# shellcheck shell=bash
# The tests in other builds, for tests/nightly.sh: compilers, arm64, sanitizers,
# fuzzers, coverage, and many rounds of what is random. Sourced, not run.
: "${work:?nightly.sh sets it}" "${python:?nightly.sh sets it}"

# Everything compiles with clang, without a warning.
check_clang() {
  cmake --preset clang > "$work/clang.log" 2>&1 &&
    cmake --build build/clang >> "$work/clang.log" 2>&1
  local code=$?
  [[ $code -eq 0 ]] || tail -n 30 "$work/clang.log" >&2
  verdict "exit 0" "exit $code" test "$code" -eq 0
}

# For arm64 (tests/nightly/arm64/README.md), the tests of engine, scheduler and
# what the server is made of, under qemu-user; then the server itself.
check_arm64() {
  local log=$work/arm64.log sysroot=.cache/arm64 code tests targets
  touch "$log" "$work/arm64"
  read -ra targets <<< "$(sed '/^#/d' tests/nightly/arm64/tests.txt | paste -sd ' ')"
  tests=$(IFS='|' && echo "${targets[*]}")
  deploy/install-deps.sh --arm64 && fetch_model && install_client &&
    tests/nightly/arm64/sysroot.sh "$sysroot" &&
    build_programs arm64 encoderd encoderctl "${targets[@]}" &&
    GTEST_FILTER=-$(sed '/^#/d' tests/nightly/arm64/left-out.txt | paste -sd :) \
      ctest --test-dir build/arm64 --no-tests=error --verbose \
      --parallel "$(nproc)" -R "^(fuzz\.)?($tests)\$" > "$log" 2>&1 &&
    PYTHONPATH=$work/client/site "$python" tests/nightly/arm64/server.py \
      build/arm64/bin "$sysroot" > "$work/arm64"
  code=$?
  [[ $code -eq 0 ]] || tail -n 60 "$log" >&2
  verdict "0 failed" "$(grep -c '\[       OK \]' "$log") tests passed; $(
    cat "$work/arm64")" test "$code" -eq 0
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
    executions=$((executions + $(awk '/number_of_executed_units/ {n = $2}
      END {print n + 0}' "$work/fuzz.$name")))
  done
  [[ $code -eq 0 ]] || tail -n 5 "$work/fuzz.log" >&2
  verdict "0 faults" "$executions executions" test "$code" -eq 0
}

# What takes too long under ASan and UBSan for .ci/run: whole models and
# attention on the emulated card, its schedules, many batches; and the goldens
# that are quick: of pipelines, and of vectors in fewer bytes.
check_asan() {
  local log=$work/asan.log code
  local tests="batch_invariance_test cuda_attention_op_test cuda_full_batch_test"
  tests+=" cuda_schedule_test cuda_whole_model_test golden_pipeline_test"
  tests+=" quantize_golden_test"
  ENCODERD_PRESET=asan ENCODERD_TARGETS=$tests \
    tests/run.sh -R "^(${tests// /|})\$" > "$log" 2>&1
  code=$?
  [[ $code -eq 0 ]] || tail -n 60 "$log" >&2
  verdict "0 reports" "$(grep -E 'tests (passed|failed)' "$log")" \
    test "$code" -eq 0
}

# Server and C++ client under ThreadSanitizer, which is told what Abseil's
# mutexes and gRPC's completion queues order (tests/support/tsan_libraries.cc),
# and leaves out what libraries built without it access themselves. Programs
# started by a test are left out: they are not told.
check_tsan() {
  local log=$work/tsan.log code tests
  tests=$(cmake --preset tsan-server > "$log" 2>&1 &&
    ctest --test-dir build/tsan-server -N |
    grep -oE '(server|rpc|api|observe|security|net|trace|client|encoderctl)[a-z_]*_test$' |
      grep -vE '^server_(process|model)_test$' | paste -sd ' ')
  TSAN_OPTIONS=ignore_noninstrumented_modules=1 \
    ENCODERD_PRESET=tsan-server ENCODERD_TARGETS=$tests tests/run.sh \
    -R "^(${tests// /|})\$" > "$log" 2>&1
  code=$?
  [[ $code -eq 0 ]] || tail -n 60 "$log" >&2
  verdict "0 reports" "$(grep -E 'tests (passed|failed)' "$log")" \
    test "$code" -eq 0
}

# How much of what reports an error the suite runs.
check_coverage() {
  local log=$work/coverage.log tests lines
  find build/coverage -name '*.gcda' -delete 2> /dev/null
  ENCODERD_PRESET=coverage tests/run.sh -LE 'lint|golden|cuda' \
    -E 'tokenizer_(differential|byte_pair|unigram)|gpu_script|client_languages' \
    > "$log" 2>&1
  tests=$?
  [[ $tests -eq 0 ]] || tail -n 40 "$log" >&2
  python3 tests/coverage/error_lines.py --build build/coverage \
    > "$work/error_lines"
  lines=$?
  cat "$work/error_lines" >&2
  verdict "0 tests failed; at least 90 %" \
    "tests: exit $tests; $(tail -n 1 "$work/error_lines")" \
    test "$tests" -eq 0 -a "$lines" -eq 0
}

# The queue's simulation: a million random schedules, each in virtual time.
check_simulation() {
  local log=$work/simulation.log code
  touch "$log"
  build_programs dev pipeline_simulation_test &&
    ENCODERD_SCHEDULES=1000000 build/dev/bin/pipeline_simulation_test \
      > "$log" 2>&1
  code=$?
  [[ $code -eq 0 ]] || tail -n 20 "$log" >&2
  verdict "1000000 schedules, 0 faults" \
    "$(grep -oE '[0-9]+ schedules.*' "$log" | head -n 1 | cut -c1-60)" \
    test "$code" -eq 0
}
