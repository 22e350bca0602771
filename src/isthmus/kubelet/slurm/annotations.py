"""Annotations of pods and namespaces that Slurm and srun are asked by.

Each has two names, `slurm-job.hpk.io/X` and `slurm.hpk.io/X`, as HPK's manifests of different years have it; a pod
that gives both must give the same. A name below these prefixes that is not here is a mistake that would go unseen.
"""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches

from isthmus.model.pod_inputs import Object

PREFIX, SYNONYM = "slurm-job.hpk.io", "slurm.hpk.io"
FLAGS = f"{PREFIX}/flags"
MPI_FLAGS = f"{PREFIX}/mpi-flags"
MPI_HOME = f"{PREFIX}/mpi-home"
MPI_CONTAINER = f"{PREFIX}/mpi-container"
MPI_WRAPPER = f"{PREFIX}/mpi-wrapper"
ACCOUNT = f"{PREFIX}/account"
PARTITION = f"{PREFIX}/partition"
_KNOWN = (FLAGS, MPI_FLAGS, MPI_HOME, MPI_CONTAINER, MPI_WRAPPER, ACCOUNT, PARTITION)


def value(holder: Object, name: str) -> str | None:
    """Return an annotation of a pod or a namespace, by either of its names; None where it has none."""
    said = _said(holder)
    return next((said[one] for one in _names(name) if one in said), None)


def name_used(holder: Object, name: str) -> str:
    """Return by which of its names a holder gives an annotation."""
    return next((one for one in _names(name) if one in _said(holder)), name)


def is_true(holder: Object, name: str) -> bool:
    """Tell whether an annotation that is `true` or `false` is true."""
    return value(holder, name) == "true"


def problems(pod: Object) -> Iterator[str]:
    """Give what is wrong with a pod's annotations, their options apart."""
    said = _said(pod)
    for name in _KNOWN:
        first, second = _names(name)
        if first in said and second in said and said[first] != said[second]:
            yield f"annotations {first} and {second} are one, and differ; remove one of them"
    for name in (MPI_HOME, MPI_WRAPPER):
        if (told := value(pod, name)) not in (None, "true", "false"):
            yield f"annotation {name_used(pod, name)} is {told!r}; write 'true' or 'false'"


def unknown(pod: Object) -> Iterator[str]:
    """Give the annotations that look like these and change nothing."""
    names = [name.partition("/")[2] for name in _KNOWN]
    for given in sorted(_said(pod)):
        prefix, _, name = given.partition("/")
        if prefix in (PREFIX, SYNONYM) and name not in names:
            meant = "".join(f"; did you mean {prefix}/{near}?" for near in get_close_matches(name, names, n=1))
            yield f"annotation {given} is ignored: it is not known{meant}"


def _said(holder: Object) -> dict[str, str]:
    return holder["metadata"].get("annotations") or {}


def _names(name: str) -> tuple[str, str]:
    return name, name.replace(PREFIX, SYNONYM, 1)
