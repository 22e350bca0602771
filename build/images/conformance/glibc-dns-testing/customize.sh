#!/bin/sh
# No package was configured: where the dynamic linker lies. Tests' shell is dash, which does not shadow programs.
set -eu
root=${1:-}
if [ ! -d "$root" ] || [ "$(realpath "$root")" = / ]; then
    echo "usage: customize.sh FOLDER, the root of an image" >&2
    exit 2
fi

for name in lib lib64; do
    if [ -e "$root/usr/$name" ] && [ ! -e "$root/$name" ]; then
        ln -s "usr/$name" "$root/$name"
    fi
done
ln -sf dash "$root/usr/bin/sh"
