#!/bin/bash
# Runs on the submit host as an ordinary user: several loops at once start the program again and again, and others
# start jobs of no MPI, that come and go meanwhile.
# Arguments: loops, runs of each loop, ranks per node, nodes, MPI, srun's --mpi for it, its other options, loops of
# other jobs. Prints the exit status of each run and, after a failure, why.
set -uo pipefail
loops=$1 runs=$2 ranks=$3 nodes=$4 mpi=$5 kind=$6 options=$7 others=$8
cd ~/isthmus-bench || exit
export OMPI_MCA_mpi_yield_when_idle=1

# shellcheck disable=SC2086 # options are several words
start() {
    timeout --kill-after=10 60 srun --quiet --time=2 $options "$@"
}

repeat() {
    local run status
    for ((run = 0; run < runs; run++)); do
        start --mpi="$kind" --nodes="$nodes" --ntasks-per-node="$ranks" --mem-per-cpu=64 \
            "./mpi_start.$mpi" "$((nodes * ranks))" >"loop-$1.log" 2>&1
        status=$?
        ((status == 0)) && echo 0 || echo "$status $(head -c 300 "loop-$1.log" | tr '\n' ' ')"
    done
}

come_and_go() {
    while test -e others; do
        start --nodes="$((1 + RANDOM % 2))" --mem=20 sleep "0.$((RANDOM % 10))" >/dev/null 2>&1
    done
}

touch others
for ((loop = 0; loop < others; loop++)); do
    come_and_go &
done
starts=()
for ((loop = 0; loop < loops; loop++)); do
    repeat "$loop" &
    starts+=($!)
done
wait "${starts[@]}"
rm others
wait
