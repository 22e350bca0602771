#!/bin/bash
# run_action.sh s3://BUCKET/KEY ARGUMENT...: as ParallelCluster runs a custom action: from a file of a random name, as
# root, with the arguments alone, for 2100 s at most; what it says on stdout is lost.
set -euo pipefail
script=$(mktemp /tmp/tmp.XXXXXX)
trap 'rm -f "$script"' EXIT
aws s3 cp --only-show-errors "$1" "$script"
shift
chmod +x "$script"
timeout 2100 "$script" "$@" >/dev/null
