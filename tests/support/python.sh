#!/bin/sh
# Runs a Python test with the interpreter that has tests/requirements.txt.
if [ -z "$ENCODERD_TEST_PYTHON" ]; then
  echo "ENCODERD_TEST_PYTHON names no Python; tests/run.sh makes one and sets it:" >&2
  echo "  export ENCODERD_TEST_PYTHON=\$PWD/.cache/venv/bin/python" >&2
  exit 1
fi
exec "$ENCODERD_TEST_PYTHON" "$@"
