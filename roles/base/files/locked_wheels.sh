#!/bin/sh
# locked_wheels.sh PIP_PYTHON LOCK VERSION FOLDER: fetch the wheels that a lock file names for a version of Python, once.
# Another run may do the same at this moment: each has a folder of its own, and one of them gets the name.
set -eu
python=$1 lock=$2 version=$3 folder=$4
[ ! -e "$folder" ] || exit 0
mkdir -p "${folder%/*}"
part=$(mktemp -d "$folder.XXXXXX")
chmod 755 "$part"
trap 'rm -rf "$part"' EXIT
"$python" -m pip download --quiet --require-hashes --only-binary=:all: --no-deps --python-version "$version" \
    --requirement "$lock" --dest "$part"
mv --no-target-directory "$part" "$folder" || [ -e "$folder" ]
echo fetched
