#!/bin/sh
# Tests look for these: a second name of the program, a folder to write to, and a user of a group of the image's own.
set -eu
root=${1:-}
if [ ! -d "$root" ] || [ "$(realpath "$root")" = / ]; then
    echo "usage: customize.sh FOLDER, the root of an image" >&2
    exit 2
fi

ln -s agnhost "$root/agnhost-2"
# Tests call `nc -v -t` by their shell: busybox's nc knows neither, and its sh takes its own programs first.
ln -sf dash "$root/usr/bin/sh"
ln -sf nc.openbsd "$root/usr/bin/nc"
mkdir "$root/uploads"
for name in lib lib64; do
    if [ -e "$root/usr/$name" ] && [ ! -e "$root/$name" ]; then
        ln -s "usr/$name" "$root/$name"
    fi
done
echo user-defined-in-image:x:1000:1000::/home/user-defined-in-image:/bin/sh >>"$root/etc/passwd"
cat >>"$root/etc/group" <<'GROUPS'
user-defined-in-image:x:1000:
group-defined-in-image:x:50000:user-defined-in-image
GROUPS
