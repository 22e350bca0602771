#!/bin/sh
# netpipe BYTES REPEATS: NetPIPE between two ranks, up to messages of BYTES; one line of JSON from the rank that has it.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
NPopenmpi -p 0 -l 1 -u "$1" -n "$2" -o "$folder/points" >"$folder/log" 2>&1 || { cat "$folder/log" >&2; exit 1; }
if [ -s "$folder/points" ]; then
    awk -v upper="$1" '
        { points = points (NR > 1 ? ", " : "") "[" $1 ", " $2 / 8 ", " $3 * 1e6 "]"; last = $1 }
        END {
            print "{\"program\": \"netpipe\", \"columns\": [\"bytes\", \"mb_s\", \"us\"], \"points\": [" points "], " \
                "\"verified\": " (last >= upper / 2 && last <= upper ? "true" : "false") "}"
        }' "$folder/points"
fi
