#!/bin/bash
# boot.sh: a compute node comes up in ParallelCluster's order: OnNodeStart, the shared Slurm, OnNodeConfigured, slurmd.
# Prints how many seconds OnNodeConfigured took.
set -euo pipefail
mkdir -p /opt/slurm
mountpoint --quiet /opt/slurm || mount --bind /home/.slurm /opt/slurm
/root/node.sh
began=$(date +%s.%N)
/root/run_action.sh s3://site/isthmus/mol/bootstrap.sh compute "$1" s3://site/isthmus/mol
date +%s.%N | awk -v began="$began" '{printf "%.1f\n", $1 - began}'
systemctl start munge
systemctl start slurmd
