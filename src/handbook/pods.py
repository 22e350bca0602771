"""reference/pods.md: which fields and annotations of a pod count, from the kubelet's own tables."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from kubernetes_asyncio.client.models import V1Container, V1PodSecurityContext, V1PodSpec, V1SecurityContext, V1Volume

from handbook.markdown import block, code, page, table
from handbook.source import constant, modules
from isthmus.kubelet.admit import fields
from isthmus.kubelet.admit import pod as refusals
from isthmus.kubelet.slurm import annotations as notes
from isthmus.kubelet.slurm import flags
from isthmus.kubelet.translate import identity
from isthmus.kubelet.volumes import registry

_ANNOTATIONS = {
    notes.FLAGS: "options of sbatch that say what the job needs, where and when: `--constraint=a100 --time=30`",
    notes.MPI_FLAGS: "options of srun, for a container that runs as several tasks: `--mpi=pmix`",
    notes.MPI_CONTAINER: "which container of several runs as several tasks; `main` without it",
    notes.MPI_WRAPPER: '`"true"`: words of its command before `--` run once, what follows is the tasks\' program',
    notes.MPI_HOME: '`"true"`: tasks see the user\'s home; otherwise they do not',
    notes.ACCOUNT: "account of the pod's job; on a Namespace, for all its pods",
    notes.PARTITION: "partition of the pod's job; on a Namespace, for all its pods",
}


def text(root: Path) -> str:
    """Return the page."""
    return page(
        "# Pods",
        "Which fields and annotations of a pod count on the node `slurm`, and which are refused, made from the tables"
        " of the kubelet. A pod with a refused field fails before any job is submitted, with reason"
        " `UnsupportedPod` and the messages below.",
        "## Annotations",
        table(("annotation", "what it asks for"), ((code(name), said) for name, said in explained().items())),
        f"Each may be written with `{notes.SYNONYM}/` as well.",
        f"Options that `{notes.FLAGS}` takes, in their long or short form:",
        block(_wrapped(flags.SBATCH)),
        f"Options that `{notes.MPI_FLAGS}` takes:",
        block(_wrapped(flags.SRUN)),
        "Refused with a reason of their own; all others are refused as unknown:",
        table(("option", "why"), ((code(f"--{name}"), why) for name, why in sorted(flags.REASONS.items()))),
        "## Fields of `spec`",
        _fields(V1PodSpec, fields.SPEC, {name: why for name, (_, why) in refusals.SPEC.items()}),
        "Taken, and of no effect:",
        table(
            ("field", "event `NotAsElsewhere`"), ((code(name), why) for name, why in sorted(refusals.IGNORED.items()))
        ),
        "## Fields of `spec.securityContext`",
        _fields(
            V1PodSecurityContext,
            frozenset(_names(V1PodSecurityContext)),
            {name: why for name, (_, why) in refusals.CONTEXT.items()},
        ),
        "## Fields of a container",
        _fields(V1Container, fields.CONTAINER, {}),
        "Fields of a container's `securityContext`:",
        block(_wrapped(_names(V1SecurityContext))),
        "Capabilities that it may add:",
        block(_wrapped(identity.CAPABILITIES)),
        "## Volumes",
        _fields(V1Volume, frozenset(registry.kinds()) | {"name"}, {}),
        f"Sources of a projected volume: {', '.join(map(code, sorted(registry.sources())))}.",
        "## Messages of refused pods",
        "What stands in braces is the pod's own.",
        block("\n".join(sorted(set(messages(root))))),
    )


def explained() -> Mapping[str, str]:
    """Return annotation -> what it asks for.

    Raises:
        KeyError: the code has an annotation that nobody explained here.
    """
    known = {value for name, value in vars(notes).items() if isinstance(value, str) and "/" in value and name.isupper()}
    if known != set(_ANNOTATIONS):
        raise KeyError(f"annotations {sorted(known ^ set(_ANNOTATIONS))}: explain them in {__name__}, or remove them")
    return _ANNOTATIONS


def messages(root: Path) -> Iterator[str]:
    """Give each message by which a pod is refused, with the names of what is filled in."""
    for _, module in modules(root, "kubelet/admit", "kubelet/volumes"):
        for node in ast.walk(module):
            said = _said(node.value) if isinstance(node, ast.Yield) and node.value else ""
            if said and not said.endswith(("{problem}", "{why}")):
                yield said


def _said(node: ast.expr) -> str:
    if isinstance(node, ast.JoinedStr):
        return "".join(_said(part) for part in node.values)
    if isinstance(node, ast.Tuple):
        return ": ".join(map(_said, node.elts))
    if isinstance(node, ast.FormattedValue):
        return f"{{{_named(node.value)}}}"
    return constant(node)


def _named(node: ast.expr) -> str:
    """Return a word for what is filled in."""
    if isinstance(node, ast.Subscript):
        return constant(node.slice)
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else "..."


def _fields(model: Any, known: frozenset[str], refused: Mapping[str, str]) -> str:
    names = _names(model)
    why = {name: refused.get(name, "" if name in known else "unknown") for name in names}
    rows = ((code(name), _taken(name, said), said) for name, said in why.items())
    return table(("field", "taken", "why not"), rows)


def _taken(name: str, why: str) -> str:
    """Return whether a field may have a value; the operating system may be the one there is."""
    if not why:
        return "yes"
    well, _ = refusals.SPEC.get(name, (None, ""))
    return "in part" if well and well({"name": "linux"}) else "no"


def _names(model: Any) -> list[str]:
    return sorted(model.attribute_map.values())


def _wrapped(names: Any, width: int = 110) -> str:
    lines = [""]
    for name in sorted(names):
        if len(lines[-1]) + len(name) > width:
            lines.append("")
        lines[-1] += f"{name} "
    return "\n".join(line.rstrip() for line in lines)
