#!/bin/bash
# Fully containerized, optimized: the image's Open MPI is of the host's version and speaks the host's PMIx.
# Slurm starts the ranks as it starts native ones. FAKEROOT=1 runs as root inside.
#SBATCH --job-name=mpi-optimized
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --mem-per-cpu=200
#SBATCH --time=5
set -euo pipefail
program=${1:?the program, compiled with mpicc.openmpi}
image=${2:?the image: a file, or what isthmus pull printed}
options=(--bind "$PWD")
if [[ ${FAKEROOT:-0} == 1 ]]; then
    # PMIx compares user ids, and inside everybody is root: munge tells who is who.
    options+=(--fakeroot --bind /run/munge)
    export PMIX_MCA_psec=munge
fi
srun --mpi=pmix apptainer exec "${options[@]}" "$image" "$program"
