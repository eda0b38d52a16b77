#!/usr/bin/env bash
# Makes a root folder of Debian 13 with what Go and Rust need, for
# ENCODERD_TEST_CHROOT of test_languages.py. Needs root and debootstrap; takes
# some minutes, 400 MB to load and 3.5 GB of disk.
#
#   debian13.sh FOLDER       a FOLDER that is already made stays as it is; one
#                            that something else made is refused
set -euo pipefail

packages=(
  ca-certificates protobuf-compiler libprotobuf-dev
  golang-go golang-google-grpc-dev golang-google-genproto-dev
  protoc-gen-go protoc-gen-go-grpc
  cargo librust-tonic-dev librust-tonic-build-dev librust-tonic-types-dev
  librust-prost-dev librust-tokio-dev
)

if [[ $# -ne 1 ]]; then
  echo "usage: debian13.sh FOLDER" >&2
  exit 2
fi
folder=${1%/}
made=$folder/root/packages
if [[ "$(cat "$made" 2> /dev/null)" == "${packages[*]}" ]]; then exit 0; fi
if ! command -v debootstrap > /dev/null; then
  echo "debian13.sh: debootstrap is not installed; as root:" >&2
  echo "  apt-get install --no-install-recommends debootstrap" >&2
  exit 1
fi

if [[ -e $folder && ! -e $made ]]; then
  echo "debian13.sh: $folder exists, and this script did not make it;" >&2
  echo "  remove it, or name another folder" >&2
  exit 1
fi

# Next to it, so that FOLDER is there whole or not at all.
new=$folder.new
rm -rf "$new"
mkdir -p "$new"
debootstrap --variant=minbase trixie "$new" > "$folder.log" 2>&1 || {
  tail -n 20 "$folder.log" >&2
  echo "debian13.sh: debootstrap failed; all it said: $folder.log" >&2
  exit 1
}
chroot "$new" apt-get update -qq
chroot "$new" env DEBIAN_FRONTEND=noninteractive \
  apt-get install -y -qq --no-install-recommends "${packages[@]}" \
  >> "$folder.log" 2>&1 || {
  tail -n 20 "$folder.log" >&2
  echo "debian13.sh: apt-get failed; all it said: $folder.log" >&2
  exit 1
}
rm -rf "$new"/var/cache/apt/archives/*.deb

# Cargo takes Debian's crates, and asks no registry.
mkdir -p "$new/root/.cargo"
cat > "$new/root/.cargo/config.toml" << 'END'
[source.crates-io]
replace-with = "debian"

[source.debian]
directory = "/usr/share/cargo/registry"

[net]
offline = true
END
echo "${packages[*]}" > "$new/root/packages"
rm -rf "$folder"
mv -T "$new" "$folder"
