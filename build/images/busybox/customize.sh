#!/bin/sh
# Nothing was configured: names for busybox's programs, and what a container expects.
set -eu
root=${1:-}
if [ ! -d "$root" ] || [ "$(realpath "$root")" = / ]; then
    echo "usage: customize.sh FOLDER, the root of an image" >&2
    exit 2
fi

for folder in proc root sys tmp usr/bin usr/sbin var/tmp; do
    mkdir -p "$root/$folder"
done
chmod 1777 "$root/tmp" "$root/var/tmp"
ln -s usr/bin "$root/bin"
ln -s usr/sbin "$root/sbin"
"$root/usr/bin/busybox" --list | while read -r name; do
    [ -e "$root/usr/bin/$name" ] || ln -s busybox "$root/usr/bin/$name"
done
echo root:x:0:0:root:/root:/bin/sh >"$root/etc/passwd"
echo root:x:0: >"$root/etc/group"
