#!/bin/sh
# fe UNKNOWNS: linear elasticity by Debian's fenicsx-performance-tests; one line of JSON from the rank that has it.
# Time and operations are PETSc's; it counts when the solver converged on as many unknowns as were asked for.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
dolfinx-scaling-test --problem_type elasticity --scaling_type strong --ndofs "$1" -log_view -ksp_converged_reason \
    -ksp_type cg -ksp_rtol 1.0e-8 -pc_type gamg >"$folder/log" 2>&1 || { cat "$folder/log" >&2; exit 1; }
awk -v wanted="$1" '
    /Num processes:/ { ranks = $3 }
    /Total degrees of freedom:/ { unknowns = $5 }
    /Linear .*solve converged/ { converged = 1 }
    /Number of Krylov iterations:/ { iterations = $6 }
    /Solution norm:/ { norm = $4 }
    /^Time \(sec\):/ { seconds = $3 }
    /^Flops:/ { operations = $NF }
    END {
        if (!unknowns)
            exit
        near = unknowns > 0.9 * wanted && unknowns < 1.1 * wanted
        print "{\"program\": \"fe\", \"ranks\": " ranks + 0 ", \"unknowns\": " unknowns ", \"iterations\": " iterations + 0 \
            ", \"norm\": " norm + 0 ", \"seconds\": " seconds + 0 ", \"gflops\": " operations / seconds / 1e9 \
            ", \"verified\": " (converged && near ? "true" : "false") "}"
    }' "$folder/log"
