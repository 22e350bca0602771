#!/bin/sh
# No package was configured: where the dynamic linker lies, and the user of nginx's workers.
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
mkdir -p "$root/run"
echo www-data:x:33:33::/var/www:/bin/sh >>"$root/etc/passwd"
echo www-data:x:33: >>"$root/etc/group"
