#!/bin/sh
set -eu
printf '{\n  "image": "kitten.jpg"\n}\n' >"$1/data.json"
