#!/usr/bin/env bash
# Installs what is missing, builds everything, runs every test; the last lines
# are ctest's summary and the reasons why tests were skipped, such as an
# instruction that this CPU lacks. Arguments go to ctest:
# tests/run.sh -R Tokenizer
#
# Without arguments all but clang-tidy: tests/run.sh -R tidy. On two cores, from
# nothing, 20 minutes or, on older ones, twice as long.
#
# ENCODERD_PRESET chooses another CMake preset (default dev; asan, tsan, clang).
# ENCODERD_TARGETS builds some targets alone (default all).
# ENCODERD_CMAKE_FLAGS: further flags of CMake, separated by spaces.
# The tests find through the environment, all set here unless already set:
#   ENCODERD_TEST_MODEL    folder of all-MiniLM-L6-v2 (deploy/fetch-model.sh)
#   ENCODERD_TEST_PYTHON   a Python that has tests/requirements.txt
set -euo pipefail
unset CDPATH
cd "$(dirname "$0")/.."

[[ $# -gt 0 ]] || set -- -E '^lint\.tidy$'
preset=${ENCODERD_PRESET:-dev}
jobs=${ENCODERD_JOBS:-$(nproc)}
read -ra targets <<< "${ENCODERD_TARGETS:-all}"
read -ra flags <<< "${ENCODERD_CMAKE_FLAGS-}"
export DEBIAN_FRONTEND=noninteractive
export TSAN_OPTIONS=suppressions=$PWD/tests/support/tsan.supp:${TSAN_OPTIONS:-}

say() { echo "run.sh: $*"; }

deploy/install-deps.sh --tests

if [[ -z ${ENCODERD_TEST_MODEL-} ]]; then
  ENCODERD_TEST_MODEL=$(deploy/fetch-model.sh)
fi
export ENCODERD_TEST_MODEL

if [[ -z ${ENCODERD_TEST_PYTHON-} ]]; then
  venv=$PWD/.cache/venv
  if ! cmp -s tests/requirements.txt "$venv/requirements.txt" ||
    ! "$venv/bin/python" -m pip --version > /dev/null 2>&1; then
    say "making a Python environment in .cache/venv"
    rm -rf "$venv"
    python3 -m venv "$venv"
    "$venv/bin/pip" install --quiet --disable-pip-version-check \
      -r tests/requirements.txt
    cp tests/requirements.txt "$venv/requirements.txt"
  fi
  ENCODERD_TEST_PYTHON=$venv/bin/python
fi
export ENCODERD_TEST_PYTHON

export UBSAN_OPTIONS=${UBSAN_OPTIONS-print_stacktrace=1}
export LSAN_OPTIONS=${LSAN_OPTIONS-suppressions=$PWD/tests/support/lsan.supp:print_suppressions=0}

say "configuring and building (preset $preset, $jobs jobs)"
started=$SECONDS
cmake --preset "$preset" "${flags[@]}" > "build-$preset.log" 2>&1 || {
  cat "build-$preset.log"
  exit 1
}
rm -f "build-$preset.log"
cmake --build "build/$preset" --parallel "$jobs" --target "${targets[@]}"
say "built in $((SECONDS - started)) s"

log=build/$preset/Testing/Temporary/LastTest.log
rm -f "$log"
# Most tests wait more than they compute, so two run on each core.
result=0
ctest --test-dir "build/$preset" --output-on-failure --no-tests=error \
  --parallel $((2 * jobs)) "$@" || result=$?
python3 tests/support/skipped_tests.py "$log"
exit "$result"
