"""reference/reasons.md: every reason of events, pods, containers and nodes, from the lists of the code."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from pathlib import Path

from handbook.markdown import code, page, table
from handbook.source import constant, modules
from isthmus.kubelet.pods.verdict import EXPLANATIONS
from isthmus.kubelet.status.event_reasons import EventReason
from isthmus.podproto.reasons import Reason


def text(root: Path) -> str:
    """Return the page."""
    return page(
        "# Reasons",
        "What `kubectl describe` and `kubectl get pods` say of a pod in one word, and what each word means, from the"
        " lists of kubelet and supervisor.",
        "## Events",
        _table("event", EventReason),
        "Events of failed pods have the reason of the pod, from the tables below.",
        "## Reasons of pods and containers",
        _table("reason", Reason),
        "## What Slurm says",
        "While its job waits, a pod has Slurm's own reason (`Resources`, `Priority`, `QOSMaxJobsPerUserLimit`; see"
        " squeue(1)) at the condition `PodScheduled`. A pod whose job Slurm ended has the job's state as reason:",
        table(("reason", "the job"), ((code(state.value), said) for state, said in EXPLANATIONS.items())),
        "## Conditions of the node",
        table(("condition", "reason", "message"), sorted((code(a), b, c) for a, b, c in _node(root))),
    )


def _node(root: Path) -> Iterator[tuple[str, str, str]]:
    for path, module in modules(root, "kubelet"):
        for node in ast.walk(module):
            if path.parent.name == "node" and isinstance(node, ast.Tuple) and len(node.elts) == 4:
                kind, _, reason, message = node.elts
                if constant(kind) and constant(message):
                    words = code(constant(reason)) or "`SlurmAnswers`, `SlurmDoesNotAnswer`"
                    yield constant(kind), words, constant(message)


def _table(kind: str, reasons: Iterable[Reason | EventReason]) -> str:
    return table((kind, "meaning"), sorted((code(reason.value), reason.meaning) for reason in reasons))
