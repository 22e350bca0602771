"""Layer bench: the papers' measurements, with Slurm and Kubernetes on the same nodes of one site.

`plan` computes which runs there are and in which order; `running` executes them and stores each result at once, so that
an interrupted session can be resumed; `report` compares the stored results with the papers' figures. The programs, in
C and shell, are in `programs`; each verifies its own result.
"""
