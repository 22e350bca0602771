"""Annotations of pods and namespaces with options of sbatch and srun.

Each has two names, `slurm-job.hpk.io/X` and `slurm.hpk.io/X`, as in HPK's older and newer manifests; a pod
with both must give them the same value. An unknown name below these prefixes is reported as a probable mistake.
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
    """Return an annotation of a pod or a namespace, by either of its names, or None."""
    said = _said(holder)
    return next((said[one] for one in _names(name) if one in said), None)


def name_used(holder: Object, name: str) -> str:
    """Return the name under which an object has an annotation."""
    return next((one for one in _names(name) if one in _said(holder)), name)


def is_true(holder: Object, name: str) -> bool:
    """Return whether an annotation that is `true` or `false` is true."""
    return value(holder, name) == "true"


def problems(pod: Object) -> Iterator[str]:
    """Yield the problems of a pod's annotations, except of their options."""
    said = _said(pod)
    for name in _KNOWN:
        first, second = _names(name)
        if first in said and second in said and said[first] != said[second]:
            yield f"annotations {first} and {second} are one, and differ; remove one of them"
    for name in (MPI_HOME, MPI_WRAPPER):
        if (text := value(pod, name)) not in (None, "true", "false"):
            yield f"annotation {name_used(pod, name)} is {text!r}; write 'true' or 'false'"


def unknown(pod: Object) -> Iterator[str]:
    """Yield annotations below these prefixes that have no effect."""
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
