"""Runs the containers of one pod inside its Slurm job: `python -I -m isthmus.supervisor <pod folder>`.

A program of its own, of the standard library of Python >= 3.9 alone: it imports nothing else of Isthmus, so that a
compute node needs nothing but Apptainer and a Python.
"""
