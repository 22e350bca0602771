"""Layer bench: the papers' measurements, on one site, with Slurm and Kubernetes on the same nodes.

`plan` decides purely what is run, in which order; `running` runs it and keeps each result at once, so that whoever was
ended goes on from there; `report` compares what is kept with what the papers published. The programs, in C and shell,
are in `programs`: each checks its own result.
"""
