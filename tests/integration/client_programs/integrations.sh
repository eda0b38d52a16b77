#!/bin/sh
# Runs the tests of the Python client inside the packages that take it in place
# of a model, and with those whose tables it takes, in a virtual environment
# made for them in FOLDER (about 7 GB).
#   PYTHONPATH=SITE ENCODERD_TEST_PROGRAMS=BIN ENCODERD_TEST_MODEL=MODEL \
#     integrations.sh FOLDER
# SITE: where install.sh has put the client. The last line has the figures.
set -eu
here=$(dirname "$0")
python3 -m venv "$1"
"$1/bin/pip" install --quiet --disable-pip-version-check \
  -r "$here/../../requirements.txt" -r "$here/requirements.txt"
exec "$1/bin/python" -m pytest -q -p no:cacheprovider \
  "$here/test_integrations.py" "$here/test_sentence_transformers.py" \
  "$here/test_table_packages.py" "$here/test_tables.py" "$here/test_vectors.py"
