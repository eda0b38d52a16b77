# shellcheck shell=bash
# What wheel.sh and deb.sh share: the folder for the result, the programs, and
# the last lines; bundle.sh has the commit and what is compiled in from here.
# Source it after `set -euo pipefail`.
#
# ENCODERD_REVISION names the commit of sources that come without git;
# SOURCE_DATE_EPOCH (seconds since 1970) the time of the files in the result.

unset CDPATH  # with it, cd may find another folder, and prints its name
script=$(basename "$0" .sh)
say() { echo "$script: $*" >&2; }

# begin [OUT]: sets out, the absolute path of the folder for the result (default:
# build/ and the script's name), and goes to the root of the sources.
begin() {
  local from=$PWD
  if [[ $# -gt 1 || ${1-} == -* ]]; then
    echo "usage: deploy/$script.sh [OUT]" >&2
    exit 2
  fi
  cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit
  out=${1:-$PWD/build/$script}
  case $out in /*) ;; *) out=$from/$out ;; esac
  date_files
}

# git_here ARGUMENT...: git on the sources, whose owner may be another user; not on
# the repository that a hook of git exports.
git_here() {
  env -u GIT_DIR -u GIT_WORK_TREE -u GIT_INDEX_FILE -u GIT_OBJECT_DIRECTORY \
    git -c safe.directory='*' "$@"
}

# revision: the commit of the sources, or "unknown", as EncoderdRevision.cmake has
# it: a repository around a folder of sources is not theirs.
revision() {
  local found=${ENCODERD_REVISION-}
  if [[ -z $found && -e .git ]]; then
    found=$(git_here rev-parse HEAD || true)
  fi
  echo "${found:-unknown}"
}

# date_files: sets SOURCE_DATE_EPOCH for all that packs files, unless it is given:
# to the time of the commit, so that two builds of it give the same bytes. Sources
# that come without git have none, and files the time of the build.
date_files() {
  if [[ -z ${SOURCE_DATE_EPOCH-} && -e .git ]]; then
    SOURCE_DATE_EPOCH=$(git_here log -1 --format=%ct || true)
  fi
  if [[ -n ${SOURCE_DATE_EPOCH-} ]]; then
    export SOURCE_DATE_EPOCH
  else
    unset SOURCE_DATE_EPOCH  # setuptools fails where it is empty
  fi
}

# pack FOLDER NAME: writes a tar of NAME, in FOLDER, to standard output: the
# same bytes whoever made the files, when, and in which order.
pack() {
  tar -C "$1" --sort=name --owner=0 --group=0 --numeric-owner \
    --mode=u+rw,go=rX ${SOURCE_DATE_EPOCH:+--mtime="@$SOURCE_DATE_EPOCH"} \
    -c "$2"
}

# warn_of_changes: uncommitted changes are built in, but no version shows them.
warn_of_changes() {
  if [[ -z ${ENCODERD_REVISION-} && -e .git &&
    -n $(git_here status --porcelain || true) ]]; then
    say "warning: the sources have uncommitted changes; the result names only" \
      "the last commit, $(revision)"
  fi
}

# build_programs: encoderd and encoderctl, into build/package/bin; makes the
# folder for the result, and lets everyone read what is written from there on.
build_programs() {
  warn_of_changes
  say "building the programs (some minutes where nothing is built yet)"
  cmake --preset package -DENCODERD_REVISION="${ENCODERD_REVISION-}" > /dev/null
  cmake --build build/package --parallel "$(nproc)" \
    --target encoderd encoderctl >&2
  mkdir -p "$out"
  out=$(cd "$out" && pwd)
  umask 022
}

# built_in: the options --built-in=PACKAGE of the scripts that keep licenses, one
# a line.
built_in() { sed '/^#/d; s/^/--built-in=/' deploy/package/built-in.txt; }

# publish FILE: moves it into the folder for the result, where it replaces only
# a file of the same name, and prints its path.
publish() {
  local name=${1##*/}
  mv -f "$1" "$out/"
  say "$(stat -c %s "$out/$name") bytes"
  echo "$out/$name"
}
