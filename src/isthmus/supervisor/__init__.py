"""Runs the containers of one pod inside its Slurm job: `python -I -m isthmus.supervisor <pod folder>`.

A program of its own, of the standard library alone: of Isthmus it imports nothing but the contract with the kubelet
(`isthmus.podproto`), so that it starts in the time that an interpreter needs.
"""
