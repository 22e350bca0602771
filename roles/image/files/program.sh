#!/bin/sh
# The nodes' own programs in an image, as role base installs them, and what lets a node join by itself at its first boot;
# arguments: the root file system, the project's wheel, the unit, the place of the nodes' venv, the version.
set -eu
root=$1 wheel=$2 unit=$3 prefix=$4 key=$5

mkdir -p "$root/tmp/program" "$root$prefix/wheels"
cp "$wheel" "$root/tmp/program"
chroot "$root" "$prefix/bin/pip" install --quiet --no-index --no-deps --find-links /tmp/program --force-reinstall isthmus
rm -r "$root/tmp/program"
ln -sf "$prefix/bin/isthmus" "$root/usr/local/bin/isthmus"
chroot "$root" "$prefix/bin/isthmus" completion bash >"$root/etc/bash_completion.d/isthmus"
cp "$unit" "$root/etc/systemd/system/isthmus-join.service"
systemctl --quiet --root "$root" enable isthmus-join
for mark in program "wheels/.installed-$key"; do
    echo "$key" >"$root$prefix/$mark"
done
