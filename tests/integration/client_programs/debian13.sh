#!/usr/bin/env bash
# Makes a root folder of Debian 13 with what Go and Rust need, for
# ENCODERD_TEST_CHROOT of test_languages.py. Needs root and debootstrap; takes
# some minutes, 400 MB to load and 3.5 GB of disk.
#
#   debian13.sh FOLDER       a FOLDER that is already made stays as it is
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
folder=$1
made=$folder/root/packages
if [[ "$(cat "$made" 2> /dev/null)" == "${packages[*]}" ]]; then exit 0; fi
if ! command -v debootstrap > /dev/null; then
  echo "debian13.sh: debootstrap is not installed; as root:" >&2
  echo "  apt-get install --no-install-recommends debootstrap" >&2
  exit 1
fi

rm -rf "$folder"
mkdir -p "$folder"
debootstrap --variant=minbase trixie "$folder" > "$folder.log" 2>&1 || {
  tail -n 20 "$folder.log" >&2
  echo "debian13.sh: debootstrap failed; all it said: $folder.log" >&2
  exit 1
}
chroot "$folder" apt-get update -qq
chroot "$folder" env DEBIAN_FRONTEND=noninteractive \
  apt-get install -y -qq --no-install-recommends "${packages[@]}" \
  >> "$folder.log" 2>&1 || {
  tail -n 20 "$folder.log" >&2
  echo "debian13.sh: apt-get failed; all it said: $folder.log" >&2
  exit 1
}
rm -rf "$folder"/var/cache/apt/archives/*.deb

# Cargo takes Debian's crates, and asks no registry.
mkdir -p "$folder/root/.cargo"
cat > "$folder/root/.cargo/config.toml" << 'END'
[source.crates-io]
replace-with = "debian"

[source.debian]
directory = "/usr/share/cargo/registry"

[net]
offline = true
END
echo "${packages[*]}" > "$made"
