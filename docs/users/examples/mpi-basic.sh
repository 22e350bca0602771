#!/bin/bash
# Fully containerized, basic: the image brings an MPI of its own (MPICH), started by Slurm over PMI-2.
# Nothing of the host's MPI is used, so the image runs on any cluster. FAKEROOT=1 runs as root inside.
#SBATCH --job-name=mpi-basic
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --mem-per-cpu=200
#SBATCH --time=5
set -euo pipefail
program=${1:?the program, compiled with mpicc.mpich}
image=${2:?the image: a file, or what isthmus pull printed}
options=(--bind "$PWD")
if [[ ${FAKEROOT:-0} == 1 ]]; then
    options+=(--fakeroot)
fi
# Containers of one node see one another's memory only by the kernel's leave, which a user namespace withholds.
export UCX_TLS=${UCX_TLS:-tcp,self} FI_PROVIDER=${FI_PROVIDER:-tcp}
srun --mpi=pmi2 apptainer exec "${options[@]}" "$image" "$program"
