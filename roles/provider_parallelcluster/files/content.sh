#!/bin/sh
# content.sh WHEELS LOCK KEY FILES ARCHIVE [DEB...]: what a node gets, as one archive whose bytes depend on that alone.
set -eu
wheels=$1 lock=$2 key=$3 files=$4 archive=$5
shift 5
mkdir -p "${archive%/*}"
part=$(mktemp -d "$archive.XXXXXX")
trap 'rm -rf "$part"' EXIT
mkdir "$part/content" "$part/content/debs"
cp "$wheels" "$part/content/wheels.tar"
cp "$lock" "$part/content/lock"
echo "$key" >"$part/content/key"
cp "$files/setup.sh" "$files/join.sh" "$files/token.sh" "$files"/*.service "$files"/*.path "$files"/*.timer "$part/content"
[ $# -eq 0 ] || cp "$@" "$part/content/debs"
chmod 755 "$part"/content/*.sh
tar --create --file "$part/tar" --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner --directory "$part/content" .
mv "$part/tar" "$archive"
