#!/bin/bash
# Makes the image of the users' control planes:  build.sh IMAGE NAME=PATH...
# It holds the programs as they are, and the empty places where Apptainer puts the host's files and the cluster's
# folders. The file is whole or not there; with equal programs and mksquashfs it is the same, byte for byte.
set -euo pipefail

image=$1
shift

exec 9>"$image.lock"
flock 9
if [ -e "$image" ]; then
    exit 0
fi
work=$(mktemp -d "$image.XXXXXX")
trap 'rm -rf "$work"' EXIT

root=$work/root
mkdir -p "$root"/{cluster,dev,disk,etc,home,proc,root,run,sys,tmp,usr/local/bin,var/tmp}
touch "$root"/etc/{group,hosts,localtime,passwd,resolv.conf}
for program; do
    install -m 0755 "${program#*=}" "$root/usr/local/bin/${program%%=*}"
done
chmod -R u=rwX,go=rX "$root"

mksquashfs "$root" "$work/image" -all-root -noappend -no-xattrs -no-progress -quiet -reproducible \
    -mkfs-time 0 -all-time 0 -comp zstd -Xcompression-level 3
sync "$work/image"
mv "$work/image" "$image"
