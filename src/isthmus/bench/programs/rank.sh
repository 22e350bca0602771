#!/bin/sh
# rank PROGRAM [ARGUMENT...]: one rank of a run, and when and where it began and ended, whoever started it.
# Each line is one write, so that lines of several ranks stay whole.
set -u
here=${SLURMD_NODENAME:-$(hostname)}
echo "rank begins $here $(date +%s.%N)"
"$@"
status=$?
echo "rank ends $here $(date +%s.%N) $status"
exit "$status"
