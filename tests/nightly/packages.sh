# shellcheck shell=bash
# Checks of nightly.sh of what deploy/ packs for users. Sourced, not run.
: "${work:?nightly.sh sets it}" "${python:?nightly.sh sets it}"

# package_check NAME: a program of tests/integration/packages; its lines about
# figures go to $work/NAME.
package_check() {
  touch "$work/$1"
  deploy/install-deps.sh --containers && fetch_model &&
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
  verdict "24 MB, embedding 60 s, 0 faults" "$(cat "$work/wheel_test")" \
    test "$code" -eq 0
}

# The Debian package in a bare Debian, and its service under a real systemd.
check_deb() {
  package_check deb_test
  local code=$?
  verdict "0 faults" "$(cat "$work/deb_test")" test "$code" -eq 0
}

# The quick start of README.md in a bare Debian: from the sources to embeddings.
check_source() {
  package_check source_test
  local code=$?
  verdict "0 faults" "$(cat "$work/source_test")" test "$code" -eq 0
}
