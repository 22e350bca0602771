#!/bin/sh
set -eu
root=${1:-}
if [ ! -d "$root" ] || [ "$(realpath "$root")" = / ]; then
    echo "usage: customize.sh FOLDER, the root of an image" >&2
    exit 2
fi

printf '{\n  "image": "kitten.jpg"\n}\n' >"$root/data.json"
