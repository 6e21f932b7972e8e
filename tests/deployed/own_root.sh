#!/bin/sh
# Runs a command where containers can run although this is a chroot, or /sys has no control groups: with mounts of its own, which are
# gone when it ends. Elsewhere it just runs the command.
#
#     tests/deployed/own_root.sh COMMAND ...
#
# runc leaves its root by pivot_root, which asks for a mount point; and it puts containers into control groups.
set -eu
has_control_groups() { [ -e /sys/fs/cgroup/memory ] || [ -e /sys/fs/cgroup/cgroup.controllers ]; }
if [ "$(id -u)" != 0 ] || { mountpoint --quiet / && has_control_groups; }; then
    exec "$@"
fi
if [ -z "${COUNTERSIGN_OWN_MOUNTS:-}" ]; then
    # Unchanged: the propagation of a root that is no mount point cannot be set.
    unshare --mount --propagation unchanged true || { echo "Containers cannot run here: root may not mount anything." >&2; exit 1; }
    COUNTERSIGN_OWN_MOUNTS=1 exec unshare --mount --propagation unchanged "$0" "$@"
fi
folder=$(pwd)
root=$(mktemp --directory)
mount --rbind / "$root"
mount --make-rprivate "$root"
mount -t sysfs sysfs "$root/sys"
mount -t tmpfs tmpfs "$root/run"
# Version 1 where the kernel's controllers are in use as such, else version 2.
if awk '$1 == "memory" && $2 != 0 {found = 1} END {exit !found}' /proc/cgroups; then
    mount -t tmpfs cgroup "$root/sys/fs/cgroup"
    for controller in $(awk '$1 != "#subsys_name" && $2 != 0 {print $1}' /proc/cgroups); do
        mkdir "$root/sys/fs/cgroup/$controller"
        mount -t cgroup -o "$controller" "$controller" "$root/sys/fs/cgroup/$controller"
    done
else
    mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup"
fi
exec chroot "$root" sh -c 'cd "$1" && shift && exec "$@"' sh "$folder" "$@"
