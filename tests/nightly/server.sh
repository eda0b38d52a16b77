# shellcheck shell=bash
# The server in operation, for tests/nightly.sh: bounds, memory, the container,
# restarts, rotations, Prometheus. Sourced, not run.
: "${work:?nightly.sh sets it}" "${python:?nightly.sh sets it}"

# What happens at a random moment, a hundred times: TERM under the load of 200
# callers, kill -9 and a new start; and 10,000 cancels.
check_rounds() {
  local log=$work/rounds.log code passed
  touch "$log"
  build_programs dev server_process_test server_queue_test \
    encoderd_fake_server &&
    ENCODERD_TEST_ROUNDS=100 build/dev/bin/server_process_test \
      --gtest_filter='*TermUnderLoad*:*KillNine*' > "$log" 2>&1 &&
    ENCODERD_TEST_ROUNDS=10000 build/dev/bin/server_queue_test \
      --gtest_filter='*CancelsAtAnyMoment*' >> "$log" 2>&1
  code=$?
  [[ $code -eq 0 ]] || tail -n 40 "$log" >&2
  passed=$(grep -oE 'PASSED.*' "$log" | paste -sd ' ')  # 0 tests pass, too
  verdict "100 rounds, 0 lost" "$passed" test "$code" -eq 0 -a \
    "$passed" = "PASSED  ] 2 tests. PASSED  ] 1 test."
}

# python_check NAME ARGUMENT...: a program of tests/integration/container, over
# a server outside a container; its lines about figures go to $work/NAME.
python_check() {
  local name=$1
  shift
  build_programs bench encoderd encoderctl && install_client && fetch_model ||
    return
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
  deploy/install-deps.sh --containers &&
    python_check container_test
  local code=$?
  verdict "under 66 MB, 0 faults" "$(paste -sd ';' "$work/container_test")" \
    test "$code" -eq 0
}

# 100 restarts by TERM under load, callers with the shipped service config.
check_restarts() {
  touch "$work/restarts"
  python_check restarts 100
  local code=$?
  verdict "0 lost" "$(cat "$work/restarts")" test "$code" -eq 0
}

# What has a bound in seconds or bytes: start, leaving, a lost device, masses of
# callers and hostile ones.
check_bounds() {
  touch "$work/bounds"
  build_programs dev encoderd encoderd_fake_server && install_client &&
    fetch_model &&
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
  if build_programs bench encoderd encoderd_fake_server grpc_bench &&
    fetch_model; then
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
  build_programs dev encoderd_fake_server && install_client &&
    PYTHONPATH=$work/client/site "$python" \
      tests/integration/client_programs/rotations.py \
      --programs=build/dev/bin 100 > "$work/rotations"
  local code=$?
  verdict "0 failed" "$(cat "$work/rotations")" test "$code" -eq 0
}

# The programs that check_prometheus and check_dashboard watch, and what else
# these take: `monitored`.
build_monitored() {
  build_programs dev encoderd encoderctl encoderd_fake_server &&
    fetch_model &&
    monitored=(--programs=build/dev/bin --model="$ENCODERD_TEST_MODEL")
}

# A real Prometheus: every alert over a server in the trouble that earns it,
# none over a healthy one; and quantiles compared with those that callers measured.
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
