#!/bin/sh
# hpl RANKS UNKNOWNS BLOCK: HPL by Debian's hpcc, which checks its residual; one line of JSON from the rank that has it.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
high=$1
wide=1
while [ "$high" -gt "$wide" ] && [ $((high % 2)) -eq 0 ]; do
    high=$((high / 2))
    wide=$((wide * 2))
done
cat >hpccinf.txt <<INPUT
HPLinpack benchmark input file
Written by hpl.sh
HPL.out        output file name (if any)
8              device out
1              # of problem sizes (N)
$2             Ns
1              # of NBs
$3             NBs
0              PMAP process mapping
1              # of process grids (P x Q)
$wide          Ps
$high          Qs
16.0           threshold
1              # of panel fact
2              PFACTs
1              # of recursive stopping criterium
4              NBMINs
1              # of panels in recursion
2              NDIVs
1              # of recursive panel fact.
1              RFACTs
1              # of broadcast
1              BCASTs
1              # of lookahead depth
1              DEPTHs
2              SWAP
64             swapping threshold
0              L1 in (0=transposed,1=no-transposed) form
0              U  in (0=transposed,1=no-transposed) form
1              Equilibration
8              memory alignment in double
##### PTRANS #####
0              number of additional problem sizes for PTRANS
1200           values of N
0              number of additional blocking sizes for PTRANS
40             values of NB
INPUT
hpcc >log 2>&1 || { cat log >&2; exit 1; }
if [ -s hpccoutf.txt ]; then
    awk -F= -v unknowns="$2" '
        /^(HPL_Tflops|HPL_time|HPL_N|Success)=/ { told[$1] = $2 }
        END {
            print "{\"program\": \"hpl\", \"unknowns\": " told["HPL_N"] + 0 ", \"seconds\": " told["HPL_time"] + 0 \
                ", \"gflops\": " told["HPL_Tflops"] * 1000 \
                ", \"verified\": " (told["Success"] == 1 && told["HPL_N"] == unknowns ? "true" : "false") "}"
        }' hpccoutf.txt
fi
