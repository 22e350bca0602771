#!/bin/sh
set -eu
printf '{\n  "image": "nautilus.jpg"\n}\n' >"$1/data.json"
