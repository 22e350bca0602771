#!/bin/bash
# Compiles the programs; then the compilers go, and all else that is for developers alone.
set -eu
root=${1:-}
if [ ! -d "$root" ] || [ "$(realpath "$root")" = / ]; then
    echo "usage: customize.sh FOLDER, the root of an image" >&2
    exit 2
fi

chroot "$root" make -C /usr/src/bench MPICC=mpicc.openmpi OUT=/opt/bench/bin
# Debian counts the test of FEniCSx among them.
# shellcheck disable=SC2016
chroot "$root" dpkg-query --show --showformat '${Section} ${Package}\n' |
    sed -n '/ fenicsx-performance-tests$/d; s/^\(devel\|libdevel\) //p' | xargs chroot "$root" dpkg --purge --force-depends
for program in mpirun NPopenmpi dolfinx-scaling-test /opt/bench/bin/hpcg /opt/bench/bin/hpl; do
    # shellcheck disable=SC2016
    path=$(chroot "$root" sh -c 'command -v "$0"' "$program")
    # A library that went with its compiler shows here, not in a user's job.
    if chroot "$root" ldd "$path" | grep 'not found'; then
        exit 1
    fi
done
rm -rf "$root/usr/src/bench" "$root/var/log/dpkg.log" "$root"/var/lib/dpkg/*-old
