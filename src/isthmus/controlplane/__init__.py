"""A user's own Kubernetes control plane: one Slurm job, its keys, its programs, and the commands around it."""
