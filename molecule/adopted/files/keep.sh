#!/bin/bash
# Writes down every file of a folder with its content, for the tests to compare.
set -euo pipefail
find "$1" -type f -print0 | sort --zero-terminated | xargs --null sha256sum >"$1.sha256"
