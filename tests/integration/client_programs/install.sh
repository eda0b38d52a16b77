#!/bin/sh
# Installs client/python from a copy of the sources, as `pip install
# ./client/python` does from a checkout, into FOLDER/site; without a network.
#   install.sh ROOT FOLDER
set -eu
root=$1
folder=$2
rm -rf "$folder"
mkdir -p "$folder/checkout/client"
cp -R "$root/proto" "$root/LICENSE" "$folder/checkout/"
cp "$root/client/client_settings.json" "$root/client/service_config.json" \
  "$folder/checkout/client/"
mkdir "$folder/checkout/client/python"
cd "$root/client/python"
cp -R pyproject.toml setup.py README.md encoderd "$folder/checkout/client/python/"
cd "$folder"
exec "$root/tests/support/python.sh" -m pip install --quiet --no-index \
  --no-deps --no-build-isolation --disable-pip-version-check \
  --target "$folder/site" "$folder/checkout/client/python"
