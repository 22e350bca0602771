"""Steps of Slurm jobs: what `srun` asks for beyond what Slurm knows."""
