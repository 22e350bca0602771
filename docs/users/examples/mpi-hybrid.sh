#!/bin/bash
# Hybrid: the image has no MPI; the host's is mounted into it. The image must be of the host's Debian release,
# for the host's libraries need its C library. FAKEROOT=1 runs as root inside.
#SBATCH --job-name=mpi-hybrid
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --mem-per-cpu=200
#SBATCH --time=5
set -euo pipefail
program=${1:?the program, compiled with mpicc.openmpi}
image=${2:?the image: a file, or what isthmus pull printed}
libraries=/usr/lib/$(uname -m)-linux-gnu
options=(--bind "$PWD" --bind "$libraries:/host/lib")
for folder in "$libraries/openmpi" "$libraries/pmix2" "$libraries/ucx" /usr/share/openmpi /usr/share/pmix2 /etc/openmpi; do
    if [[ -e $folder ]]; then
        options+=(--bind "$folder")
    fi
done
if [[ ${FAKEROOT:-0} == 1 ]]; then
    options+=(--fakeroot --bind /run/munge)
    export PMIX_MCA_psec=munge
fi
export APPTAINERENV_LD_LIBRARY_PATH=/host/lib:/host/lib/openmpi/lib
srun --mpi=pmix apptainer exec "${options[@]}" "$image" "$program"
