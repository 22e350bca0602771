"""Options of sbatch and srun that an annotation may contain.

Allowed are options for resources, placement and time. Options that would run another program, as another user, move
its output, or break the link between pod and job are refused with a reason; all others are unknown.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from isthmus.kubelet.slurm import annotations as notes
from isthmus.kubelet.slurm.annotations import ACCOUNT, FLAGS, MPI_CONTAINER, MPI_FLAGS, MPI_WRAPPER, PARTITION
from isthmus.model.pod_inputs import Object

# Option -> whether it takes a value: required, none, or optional.
YES, NO, MAYBE = "yes", "no", "maybe"
SBATCH = {
    **dict.fromkeys(
        (
            *("account", "partition", "qos", "reservation", "wckey", "licenses"),
            *("time", "time-min", "begin", "deadline", "dependency", "nice", "switches"),
            *("nodes", "ntasks", "ntasks-per-node", "ntasks-per-core", "ntasks-per-socket", "ntasks-per-gpu"),
            *("cpus-per-task", "cpus-per-gpu", "core-spec", "thread-spec", "threads-per-core", "cores-per-socket"),
            *("sockets-per-node", "extra-node-info", "mincpus", "hint", "distribution", "cpu-freq"),
            *("mem", "mem-per-cpu", "mem-per-gpu", "mem-bind", "tmp"),
            *(
                "gres",
                "gres-flags",
                "gpus",
                "gpus-per-node",
                "gpus-per-socket",
                "gpus-per-task",
                "gpu-bind",
                "gpu-freq",
            ),
            *("constraint", "prefer", "nodelist", "exclude", "mail-type", "mail-user"),
        ),
        YES,
    ),
    **dict.fromkeys(("exclusive",), MAYBE),
    **dict.fromkeys(("contiguous", "oversubscribe", "overcommit", "spread-job", "use-min-nodes"), NO),
}
SRUN = {
    **dict.fromkeys(
        (
            *("mpi", "cpu-bind", "mem-bind", "gpu-bind", "gres-flags", "accel-bind", "distribution", "hint"),
            *("ntasks", "ntasks-per-node", "ntasks-per-core", "ntasks-per-socket", "ntasks-per-gpu", "nodes"),
            *("cpus-per-task", "cpu-freq", "gpu-freq", "gpus-per-task", "threads-per-core", "kill-on-bad-exit"),
            *("wait", "relative"),
        ),
        YES,
    ),
    **dict.fromkeys(("exact", "overcommit", "label"), NO),
}
_SHORT = {
    "A": "account", "p": "partition", "q": "qos", "t": "time", "N": "nodes", "n": "ntasks", "c": "cpus-per-task",
    "C": "constraint", "w": "nodelist", "x": "exclude", "L": "licenses", "d": "dependency", "G": "gpus",
    "m": "distribution", "B": "extra-node-info", "S": "core-spec", "b": "begin", "s": "oversubscribe",
    "O": "overcommit", "K": "kill-on-bad-exit", "W": "wait", "r": "relative", "l": "label",
    "o": "output", "e": "error", "i": "input", "J": "job-name", "D": "chdir", "a": "array", "M": "clusters",
    "H": "hold", "k": "no-kill", "Q": "quiet", "v": "verbose", "I": "immediate", "h": "help", "V": "version",
}  # fmt: skip
REASONS = {
    **dict.fromkeys(("wrap", "script"), "a pod's job runs the pod"),
    **dict.fromkeys(("output", "error", "input", "open-mode"), "what containers write belongs to kubectl logs"),
    **dict.fromkeys(("uid", "gid"), "a pod runs as its owner"),
    **dict.fromkeys(("export", "export-file", "get-user-env", "propagate"), "variables belong to env of the pod"),
    **dict.fromkeys(("chdir", "container", "container-id", "bcast"), "it belongs to image and workingDir of the pod"),
    **dict.fromkeys(("job-name", "comment", "extra"), "they identify the pod of a job"),
    **dict.fromkeys(("array", "clusters", "wait-all-nodes"), "a pod is one job of this cluster"),
    **dict.fromkeys(("requeue", "no-kill", "signal", "wait", "hold"), "the life of a pod is the kubelet's"),
    "pod-network": "it belongs to hostNetwork of the pod",
    "priority": "it belongs to priorityClassName of the pod",
}
# The container that runs as several tasks unless the pod names another; Argo's name for it.
MAIN = "main"
_TASKS = ("ntasks", "ntasks-per-node", "nodes")
# Limits of problems reported, and of each quoted word: a status has to hold them.
_PROBLEMS, _WORD = 10, 80
_VALUE = re.compile(r"[\x20-\x7e]*")
# Slurm reads a node list with a slash as a file name, and passes a mail address to the mail program as an argument.
_OTHERWISE = {
    "nodelist": (re.compile(r"[^/]*"), "names a file; list the nodes"),
    "exclude": (re.compile(r"[^/]*"), "names a file; list the nodes"),
    "mail-user": (re.compile(r"[^-].*"), "begins with a hyphen; write an address"),
}


@dataclass(frozen=True, slots=True)
class Parsed:
    """Parsed options of an annotation.

    Attributes:
        options: long name -> value; None for an option without one. The last of two wins.
        problems: refused options, with the reason.
    """

    options: dict[str, str | None]
    problems: tuple[str, ...] = ()

    def words(self) -> tuple[str, ...]:
        """Return the options as argv words."""
        return tuple(f"--{name}" if value is None else f"--{name}={value}" for name, value in self.options.items())


def sbatch(pod: Object) -> Parsed:
    """Return a pod's sbatch options."""
    return _parse(pod, FLAGS, SBATCH)


def owner(holder: Object) -> list[str]:
    """Return the problems of a pod's or namespace's account and partition."""
    return [
        f"annotation {notes.name_used(holder, name)} has a character that is not printable ASCII; remove it"
        for name in (ACCOUNT, PARTITION)
        if not _VALUE.fullmatch(notes.value(holder, name) or "")
    ]


def srun(pod: Object) -> Parsed:
    """Return a pod's srun options."""
    return _parse(pod, MPI_FLAGS, SRUN)


def mpi(pod: Object) -> tuple[str, ...] | None:
    """Return the srun arguments of a pod with a container of several tasks, else None."""
    asked = sbatch(pod).options
    if notes.value(pod, MPI_FLAGS) is not None or any(name in asked and asked[name] != "1" for name in _TASKS):
        return srun(pod).words()
    return None


def mpi_container(pod: Object) -> str | None:
    """Return the name of the container with several tasks: the named one, the only one, or `main`."""
    if mpi(pod) is None:
        return None
    names = [container["name"] for container in pod["spec"]["containers"]]
    return notes.value(pod, MPI_CONTAINER) or (names[0] if len(names) == 1 else MAIN)


def wrapper(pod: Object, argv: Sequence[str]) -> int:
    """Return how many arguments of a container of several tasks precede the program of its tasks.

    They run once: Argo's wrapper, which captures a step's outputs, and the wrapper that the pod's annotation names.
    """
    is_argo = len(argv) > 1 and argv[0].rpartition("/")[2] == "argoexec" and argv[1] == "emissary"
    if "--" not in argv[:-1] or not (is_argo or notes.is_true(pod, MPI_WRAPPER)):
        return 0
    return argv.index("--") + 1


def _parse(pod: Object, annotation: str, known: dict[str, str]) -> Parsed:
    text = notes.value(pod, annotation) or ""
    annotation = notes.name_used(pod, annotation)
    try:
        words = shlex.split(text)
    except ValueError as error:
        return Parsed({}, (f"annotation {annotation} cannot be read: {error}; check its quotes",))
    options: dict[str, str | None] = {}
    problems: list[str] = []
    while words:
        word = words.pop(0)
        name, value = _split(word)
        takes = known.get(name)
        if takes == YES and value is None and words and not words[0].startswith("--"):
            value = words.pop(0)
        problem = _problem(word, name, value, takes)
        if problem:
            problems.append(f"annotation {annotation}: {problem}")
        else:
            options[name] = value
    left = len(problems) - _PROBLEMS
    more = (f"annotation {annotation}: {left} more words are not allowed; remove them",) if left > 0 else ()
    return Parsed(options, (*problems[:_PROBLEMS], *more))


def _split(word: str) -> tuple[str, str | None]:
    """Return an option's long name, and its value if the argument has one; an empty name for no option."""
    if word.startswith("--"):
        name, equals, value = word[2:].partition("=")
        return name, value if equals else None
    if word.startswith("-") and len(word) > 1:
        return _SHORT.get(word[1], word[1]), word[2:].removeprefix("=") or None
    return "", None


def _problem(word: str, name: str, value: str | None, takes: str | None) -> str:
    if takes is None:
        if name in REASONS:
            return f"{word[:_WORD]!r} is not allowed: {REASONS[name]}; remove it"
        return f"{word[:_WORD]!r} is not an option a pod may set; remove it"
    if takes == YES and not value:
        return f"--{name} has no value; write --{name}=VALUE"
    if takes == NO and value is not None:
        return f"--{name} takes no value; remove {value[:_WORD]!r}"
    if value is not None and not _VALUE.fullmatch(value):
        return f"--{name} has a character that is not printable ASCII; remove it"
    pattern, why = _OTHERWISE.get(name, (_VALUE, ""))
    return f"--{name} {why}" if value is not None and not pattern.fullmatch(value) else ""
