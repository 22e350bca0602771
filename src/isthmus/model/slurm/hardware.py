"""The hardware of a compute node, as Slurm's configuration declares it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Hardware:
    """Hardware as slurm.conf declares it; equal hardware shares one NodeName line.

    Attributes:
        cpus: CPUs Slurm may give away, hardware threads included.
        memory_mib: memory for jobs in MiB, what the system keeps already taken off.
        sockets: sockets per node; None leaves the layout to Slurm, like the next two.
        cores_per_socket: cores in a socket.
        threads_per_core: hardware threads in a core.
        gres: generic resources, e.g. `gpu:a100:2`.
        features: words for `--constraint`.
        weight: nodes of lower weight are given away first; None is Slurm's default, 1.
    """

    cpus: int
    memory_mib: int
    sockets: int | None = None
    cores_per_socket: int | None = None
    threads_per_core: int | None = None
    gres: tuple[str, ...] = ()
    features: tuple[str, ...] = ()
    weight: int | None = None
