#!/usr/bin/env bash
# Makes a folder with the arm64 packages that encoderd and its tests are built
# from, of the release of Debian that runs here and from its sources: headers
# and libraries for a cross-compiler, and for qemu-aarch64 -L. Installs nothing;
# no package's scripts run. Some seconds; 280 MB of disk.
#
#   sysroot.sh FOLDER    a FOLDER that is already made stays as it is; one
#                        that something else made is refused
set -euo pipefail

# Of protobuf-compiler-grpc the build runs this machine's; gRPC's package
# configuration insists that it lies next to the libraries, too.
packages=(
  libgrpc++-dev libgrpc-dev protobuf-compiler-grpc libprotobuf-dev
  libprotoc-dev libabsl-dev libssl-dev prometheus-cpp-dev
  libicu-dev nlohmann-json3-dev libstb-dev libgtest-dev libgmock-dev
  libc6-dev libstdc++6
)

if [[ $# -ne 1 ]]; then
  echo "usage: sysroot.sh FOLDER" >&2
  exit 2
fi
folder=${1%/}
made=$folder/etc/sysroot.packages
if [[ "$(cat "$made" 2> /dev/null)" == "${packages[*]}" ]]; then exit 0; fi
if [[ -e $folder && ! -e $made ]]; then
  echo "sysroot.sh: $folder exists, and this script did not make it;" >&2
  echo "  remove it, or name another folder" >&2
  exit 1
fi
if ! grep -qx 'ID=debian' /etc/os-release; then
  echo "sysroot.sh: needs Debian, whose package sources have arm64" >&2
  exit 1
fi

# Next to it, so that FOLDER is there whole or not at all.
new=$(realpath -m "$folder").new
rm -rf "$new"
mkdir -p "$new"/{usr/lib,usr/bin,usr/sbin,etc} \
  "$new"/apt/{lists,archives,state,log}/partial
ln -s usr/lib usr/bin usr/sbin "$new/"
touch "$new/apt/status"

# This machine's sources and keys, and none of its state: as apt sees
# it, an arm64 machine on which nothing is installed.
cat > "$new/apt/apt.conf" << END
APT::Architecture "arm64";
APT::Architectures { "arm64"; };
APT::Install-Recommends "false";
APT::Sandbox::User "root";
Dir::State "$new/apt/state";
Dir::State::lists "$new/apt/lists";
Dir::State::status "$new/apt/status";
Dir::Cache::archives "$new/apt/archives";
Dir::Log "$new/apt/log";
END
export APT_CONFIG=$new/apt/apt.conf
{
  apt-get update -qq
  apt-get install -y -qq --download-only "${packages[@]}"
} > "$folder.log" 2>&1 || {
  tail -n 20 "$folder.log" >&2
  echo "sysroot.sh: apt-get failed; all it said: $folder.log" >&2
  exit 1
}

for package in "$new"/apt/archives/*.deb; do
  dpkg-deb --fsys-tarfile "$package" |
    tar -x -C "$new" --keep-directory-symlink \
      --exclude='./usr/share/doc' --exclude='./usr/share/locale' \
      --exclude='./usr/share/man'
done
# A link to /lib/... means the folder's own.
while IFS= read -r link; do
  ln -sfnr "$new$(readlink "$link")" "$link"
done < <(find "$new" -lname '/*')
rm -rf "$new/apt"
echo "${packages[*]}" > "$new/etc/sysroot.packages"
rm -rf "$folder"
mv -T "$new" "$folder"
