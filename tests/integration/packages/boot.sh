#!/usr/bin/env bash
# boot.sh ROOT UNIT: starts the systemd of the folder ROOT as process 1 of
# namespaces (mounts, processes, network, control groups) for UNIT and what that
# needs. Ends when it powers off; nothing stays. Needs root, and control groups
# of version 2, which may be empty.
set -euo pipefail

if [[ ${1-} == --inside ]]; then
  root=$2
  unit=$3
  ip link set lo up
  mount --make-rprivate /
  mount --bind "$root" "$root"
  cd "$root"
  mount -t proc proc proc
  mount -t sysfs -o ro sysfs sys
  mount -t cgroup2 cgroup2 sys/fs/cgroup
  mount -t tmpfs -o mode=755 tmpfs run
  mkdir -p old
  pivot_root . old
  umount -l old
  exec env -i container=other PATH=/usr/sbin:/usr/bin:/sbin:/bin \
    /lib/systemd/systemd --unit="$unit" --log-target=console --show-status=no
fi

if [[ $# -ne 2 ]]; then
  echo "usage: boot.sh ROOT UNIT" >&2
  exit 2
fi
groups=/sys/fs/cgroup
if [[ -d $groups/unified ]]; then groups=$groups/unified; fi
group=$(mktemp -d "$groups/encoderd-test-XXXXXX")
remove() { find "$group" -depth -type d -exec rmdir {} + 2> /dev/null; }
trap remove EXIT

(
  echo "$BASHPID" > "$group/cgroup.procs"
  exec unshare --cgroup --mount --pid --fork --kill-child --uts --ipc --net \
    "$0" --inside "$1" "$2"
) || true  # it ends by the signal that a machine is powered off with
