"""Runs the containers of one pod inside its Slurm job: `python -I -m isthmus.supervisor <pod folder>`.

A separate program that imports only the standard library, the protocol shared with the kubelet (`isthmus.podproto`) and
the backoff between attempts (`isthmus.support.backoff`), so its start costs little more than the interpreter's.
"""
