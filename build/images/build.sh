#!/bin/bash
# Builds an OCI archive of one layer:  build.sh ARCHIVE [umoci config options] -- [mmdebstrap arguments]
# The file is whole or not there. With SOURCE_DATE_EPOCH and equal packages it is the same, byte for byte.
set -euo pipefail

archive=$1
shift
config=()
while [ "$1" != -- ]; do
    config+=("$1")
    shift
done
shift

exec 9>"$archive.lock"
flock 9
if [ -e "$archive" ]; then
    exit 0
fi
work=$(mktemp -d "$archive.XXXXXX")
trap 'rm -rf "$work"' EXIT
created=$(date --utc --date="@$SOURCE_DATE_EPOCH" +%Y-%m-%dT%H:%M:%SZ)

mmdebstrap --format=tar "$@" >"$work/root.tar"

image=$work/image:latest
umoci init --layout "$work/image"
umoci new --image "$image"
umoci raw add-layer --history.created "$created" --history.created_by mmdebstrap --image "$image" "$work/root.tar"
umoci config --no-history --image "$image" --created "$created" "${config[@]}"
umoci gc --layout "$work/image"

tar --create --file="$work/archive" --directory="$work/image" --format=gnu --sort=name \
    --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner --mode=u+rwX,go+rX,go-w .
sync "$work/archive"
mv "$work/archive" "$archive"
