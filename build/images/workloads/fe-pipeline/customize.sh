#!/bin/bash
# Runs the pipeline once: what FEniCSx compiles for its forms stays in the image, for nobody can write it there later.
set -eu
root=${1:-}
if [ ! -d "$root" ] || [ "$(realpath "$root")" = / ]; then
    echo "usage: customize.sh FOLDER, the root of an image" >&2
    exit 2
fi

mkdir -p "$root/opt/fe/cache"
# shellcheck disable=SC2016
printf '#!/bin/sh\nXDG_CACHE_HOME=/opt/fe/cache exec python3 /opt/fe/bone.py "$@"\n' >"$root/opt/fe/bone"
chmod 755 "$root/opt/fe/bone"
chroot "$root" env OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 /opt/fe/bone
chmod -R a+rX "$root/opt/fe"
rm -rf "$root/var/log/dpkg.log" "$root"/var/lib/dpkg/*-old
