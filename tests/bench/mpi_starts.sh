#!/bin/bash
# Runs on the submit host as an ordinary user: several loops at once start the program again and again.
# Arguments: loops, runs of each loop, ranks per node, nodes. Prints the exit status of each run and, after a failure, why.
set -uo pipefail
loops=$1 runs=$2 ranks=$3 nodes=$4
cd ~/isthmus-bench || exit
export OMPI_MCA_mpi_yield_when_idle=1

repeat() {
    local run status
    for ((run = 0; run < runs; run++)); do
        timeout --kill-after=10 60 srun --quiet --nodes="$nodes" --ntasks-per-node="$ranks" --mem-per-cpu=64 --time=2 \
            ./mpi_start "$((nodes * ranks))" >"loop-$1.log" 2>&1
        status=$?
        ((status == 0)) && echo 0 || echo "$status $(head -c 300 "loop-$1.log" | tr '\n' ' ')"
    done
}

for ((loop = 0; loop < loops; loop++)); do
    repeat "$loop" &
done
wait
