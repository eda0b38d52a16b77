# shellcheck shell=bash
# What callers use, for tests/nightly.sh: languages, packages, tokenizers. Sourced, not run.
: "${work:?nightly.sh sets it}" "${python:?nightly.sh sets it}"

# client/examples in Go and Rust, by the commands of the READMEs, in a root
# folder of Debian 13, which .cache keeps; needs root and debootstrap.
check_languages() {
  local chroot=$PWD/.cache/debian13 log=$work/languages.log
  deploy/install-deps.sh --containers > "$log" 2>&1 &&
    tests/integration/client_programs/debian13.sh "$chroot" >> "$log" 2>&1 &&
    build_programs dev encoderd && fetch_model &&
    ENCODERD_TEST_CHROOT=$chroot ENCODERD_TEST_PYTHON=$python \
      ctest --test-dir build/dev --no-tests=error --verbose \
      -R '^client_(python_install|languages)$' >> "$log" 2>&1
  local code=$? figure
  [[ $code -eq 0 ]] || tail -n 40 "$log" >&2
  figure=$(grep -oE '[0-9]+ passed.*' "$log" | tail -n 1)
  verdict "9 passed" "${figure:-none passed}" \
    test "$code" -eq 0 -a "${figure%% *}" = 9
}

# The Python client inside the packages that take it in place of a model, and
# with the real pandas, polars and pyarrow.
check_integrations() {
  local log=$work/integrations.log code figure
  touch "$log"
  build_programs dev encoderd encoderctl fake_encoder_server &&
    install_client && fetch_model &&
    PYTHONPATH=$work/client/site ENCODERD_TEST_PROGRAMS=$PWD/build/dev/bin \
      tests/integration/client_programs/integrations.sh "$work/venv" \
      > "$log" 2>&1
  code=$?
  [[ $code -eq 0 ]] || tail -n 40 "$log" >&2
  figure="exit $code; $(tail -n 1 "$log" | cut -c1-60)"
  verdict "0 failed or skipped" "$figure" grep -qxE \
    'exit 0; [1-9][0-9]* passed(, [0-9]+ warnings?)? in [0-9.]+s( \([0-9:]+\))?' \
    <<< "$figure"
}

# Every text of the corpus in every comparison; tests/run.sh takes a tenth of
# it in most.
check_tokenizers() {
  local log=$work/tokenizers.log
  touch "$log"
  build_programs dev tokenize_lines && fetch_model &&
    ENCODERD_TEST_CORPUS=whole ENCODERD_TEST_PYTHON=$python \
      ctest --test-dir build/dev --no-tests=error --verbose \
      -R '^tokenizer_(differential|byte_pair|unigram)$' > "$log" 2>&1
  local code=$?
  [[ $code -eq 0 ]] || tail -n 40 "$log" >&2
  verdict "0 differences" "$(grep -oE '[0-9]+ passed' "$log" | paste -sd ' ')" \
    test "$code" -eq 0
}

# Settings of model folders changed one by one: vectors as sentence-transformers
# gives them, or a refusal. The packages (about 5 GB) stay in build/peers.
check_settings() {
  local log=$work/settings.log peers=$PWD/build/peers
  touch "$log"
  build_programs dev encoderd && fetch_model &&
    { [[ -x $peers/bin/python ]] || python3 -m venv "$peers"; } &&
    "$peers/bin/pip" install --quiet --disable-pip-version-check \
      -r tests/bench/requirements.txt ./client/python > "$log" 2>&1 &&
    "$peers/bin/python" tests/nightly/settings.py build/dev/bin > "$log" 2>&1
  local code=$?
  [[ $code -eq 0 ]] || tail -n 40 "$log" >&2
  verdict "0 differences" "$(tail -n 1 "$log" | cut -c1-70)" \
    test "$code" -eq 0
}
