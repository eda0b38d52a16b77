#!/usr/bin/env bash
# Installs the Debian or Ubuntu packages that encoderd is built from, and says
# which before it does. Does nothing when all are there.
#
#   deploy/install-deps.sh            what a build needs
#   deploy/install-deps.sh --tests    and what the tests, linters and fuzzers need
#   deploy/install-deps.sh --containers    and what builds and tests the image
#                                     where no engine is
#   deploy/install-deps.sh --arm64    and what compiles and runs tests for arm64
#                                     on another machine
#
# Package names hold for Debian 12 and 13 and for Ubuntu 24.04.
set -euo pipefail

build_packages=(
  g++ cmake make ninja-build ccache pkgconf dpkg-dev
  libgrpc++-dev libgrpc-dev protobuf-compiler protobuf-compiler-grpc
  libprotobuf-dev libabsl-dev libssl-dev prometheus-cpp-dev
  libicu-dev nlohmann-json3-dev libstb-dev
  ca-certificates curl python3 python3-pip python3-venv
)
test_packages=(
  git openssl libgtest-dev libgmock-dev libbenchmark-dev
  clang clang-tidy shellcheck procps valgrind
  iso-codes installation-guide-amd64
  prometheus docker-compose
  default-jdk-headless libgrpc-java protobuf-compiler-grpc-java-plugin
  libprotobuf-java libnetty-java libguava-java libperfmark-java
  libgeronimo-annotation-1.3-spec-java ruby-grpc ruby-grpc-tools
  php-cli php-curl php-google-protobuf protobuf-c-compiler libprotobuf-c-dev
  nodejs libwww-curl-perl nghttp2-client
)
container_packages=(buildah podman runc debootstrap)
arm64_packages=(g++-aarch64-linux-gnu qemu-user)

packages=("${build_packages[@]}")
case "$*" in
  '') ;;
  --tests) packages+=("${test_packages[@]}") ;;
  --containers) packages+=("${container_packages[@]}") ;;
  --arm64) packages+=("${arm64_packages[@]}") ;;
  *)
    echo "usage: deploy/install-deps.sh [--tests | --containers | --arm64]" >&2
    exit 2
    ;;
esac

if ! command -v dpkg-query > /dev/null || ! command -v apt-get > /dev/null; then
  echo "install-deps: this is not Debian or Ubuntu (no apt-get here)." >&2
  echo "install-deps: install the counterparts of: ${packages[*]}" >&2
  exit 1
fi

# installed PACKAGE...: prints those that are, for this architecture.
installed() {
  dpkg-query -W -f='${db:Status-Abbrev} ${Architecture} ${Package}\n' "$@" \
    2> /dev/null |
    sed -n "s/^[hi]i *\($(dpkg --print-architecture)\|all\) //p" | sort -u
}

missing_of() {
  comm -23 <(printf '%s\n' "$@" | sort -u) <(installed "$@")
}

as_root=()
if [[ $(id -u) != 0 ]]; then as_root=(sudo); fi

# install PACKAGE...: refreshes the package lists first.
install() {
  echo "install-deps: installing $*" >&2
  if [[ ${#as_root[@]} -gt 0 ]] && ! command -v sudo > /dev/null; then
    echo "install-deps: not root and no sudo here; run as root:" >&2
    echo "  apt-get update && apt-get install --no-install-recommends $*" >&2
    exit 1
  fi
  # The package starts a service on port 9090 of all addresses. The tests want
  # its programs only.
  if [[ " $* " == *" prometheus "* && -d /run/systemd/system ]]; then
    echo "install-deps: masking the service prometheus; to have it:" \
      "systemctl unmask prometheus" >&2
    "${as_root[@]}" systemctl mask --quiet prometheus.service
  fi
  # A new machine may be updating itself: retry the update, and let the
  # installation wait for the lock.
  local said tries=0
  until said=$("${as_root[@]}" env LC_ALL=C apt-get update -qq 2>&1); do
    tries=$((tries + 1))
    if [[ $said != *"Could not get lock"* || $tries -gt 60 ]]; then
      printf '%s\n' "$said" >&2
      return 1
    fi
    echo "install-deps: another program updates the package lists; waiting" >&2
    sleep 10
  done
  if [[ -n $said ]]; then printf '%s\n' "$said" >&2; fi
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get install -o DPkg::Lock::Timeout=600 -y -qq --no-install-recommends "$@" > /dev/null
}

mapfile -t missing < <(missing_of "${packages[@]}")
if [[ ${#missing[@]} -gt 0 ]]; then install "${missing[@]}"; fi

# clang's sanitizer and fuzzer run-time is packaged once for each version.
if [[ ${1-} == --tests ]]; then
  version=$(clang -dumpversion)
  runtime=libclang-rt-${version%%.*}-dev
  mapfile -t missing < <(missing_of "$runtime")
  if [[ ${#missing[@]} -gt 0 ]]; then install "${missing[@]}"; fi
fi
