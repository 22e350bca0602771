#!/bin/bash
# Compiles the example; then the compilers go, and all else that is for developers alone.
set -eu
root=${1:-}
if [ ! -d "$root" ] || [ "$(realpath "$root")" = / ]; then
    echo "usage: customize.sh FOLDER, the root of an image" >&2
    exit 2
fi

chroot "$root" mpic++ -O2 -Wl,--as-needed -o /home/mpiuser/pi /usr/src/pi.cc
# Debian counts mpich among them.
# shellcheck disable=SC2016
chroot "$root" dpkg-query --show --showformat '${Section} ${Package}\n' |
    sed -n '/ mpich$/d; s/^\(devel\|libdevel\) //p' | xargs chroot "$root" dpkg --purge --force-depends
chroot "$root" sh -c 'command -v mpirun && ldd /home/mpiuser/pi'
rm -f "$root/var/log/dpkg.log" "$root"/var/lib/dpkg/*-old
