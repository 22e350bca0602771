#!/bin/sh
# venv.sh PYTHON LOCK FOLDER: a venv with what a lock file names, made once, under its name only when it is whole.
# Another run may do the same at this moment: each waits for the one that began.
set -eu
python=$1 lock=$2 folder=$3
mkdir -p "${folder%/*}"
exec 9>"$folder.lock"
flock 9
[ ! -e "$folder/whole" ] || exit 0
rm -rf "$folder"
"$python" -m venv "$folder"
"$folder/bin/python" -m pip install --quiet --disable-pip-version-check --require-hashes --requirement "$lock"
touch "$folder/whole"
echo made
