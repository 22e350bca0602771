"""Node selection: a pod's node selector, node affinity and volumes as `--constraint` and `--nodelist`.

The one node object represents the whole of Slurm. A label of that node always matches. Any other pair must name what
Slurm
knows: a host name, or a feature, which is the value, or the last part of the key if the value is `true`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from isthmus.model.pod_inputs import Object, PodSettings

HOSTNAME = "kubernetes.io/hostname"


@dataclass(frozen=True, slots=True)
class Place:
    """The nodes on which a pod may run.

    Attributes:
        features: each is a feature, or alternatives joined by `|`; all must match.
        nodes: each is a set of node names; the pod runs on a node that is in all of them.
        problems: requirements that cannot be met.
    """

    features: tuple[str, ...] = ()
    nodes: tuple[frozenset[str], ...] = ()
    problems: tuple[str, ...] = ()


def place(pod: Object, settings: PodSettings, volumes: Iterable[Object] = ()) -> Place:
    """Return where a pod may run.

    Args:
        pod: the pod.
        settings: of the cluster.
        volumes: PersistentVolumes of its claims; those of one node's disk tie it to that node.
    """
    spec = pod["spec"]
    found = [_requirement(key, "In", [value], settings) for key, value in (spec.get("nodeSelector") or {}).items()]
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    found.append(_terms(affinity.get("requiredDuringSchedulingIgnoredDuringExecution"), settings))
    found += [_terms((volume["spec"].get("nodeAffinity") or {}).get("required"), settings) for volume in volumes]
    nodes = tuple(part for one in found for part in one.nodes)
    problems = [problem for one in found for problem in one.problems]
    if nodes and not frozenset.intersection(*nodes):
        problems.append("no node is in all that nodeSelector, affinity and volumes name; relax one of them")
    return Place(tuple(dict.fromkeys(part for one in found for part in one.features)), nodes, tuple(problems))


def _terms(selector: Object | None, settings: PodSettings) -> Place:
    """Return the first term that can be met: terms are alternatives."""
    terms = (selector or {}).get("nodeSelectorTerms") or ()
    places = [_term(term, settings) for term in terms]
    return next((one for one in places if not one.problems), places[0] if places else Place())


def _term(term: Object, settings: PodSettings) -> Place:
    parts = [
        _requirement(one["key"], one["operator"], one.get("values") or [], settings)
        for one in term.get("matchExpressions") or ()
    ]
    for one in term.get("matchFields") or ():
        met = _met(settings.node, one["operator"], one.get("values") or [])
        parts.append(Place() if met else Place(problems=(f"the node is {settings.node!r}; mend matchFields",)))
    return Place(
        tuple(feature for part in parts for feature in part.features),
        tuple(nodes for part in parts for nodes in part.nodes),
        tuple(problem for part in parts for problem in part.problems),
    )


def _requirement(key: str, operator: str, values: Sequence[str], settings: PodSettings) -> Place:
    if _met(settings.labels.get(key), operator, values):
        return Place()
    if operator == "In" and key == HOSTNAME and settings.slurm_nodes & {*values}:
        return Place(nodes=(frozenset(values) & settings.slurm_nodes,))
    wanted = values if operator == "In" else ["true"] if operator == "Exists" else []
    features = [feature for feature in (_feature(key, value) for value in wanted) if feature in settings.features]
    if features:
        return Place(features=("|".join(features),))
    known = ", ".join(sorted(settings.features)) or "none"
    text = f"{key} {operator} {','.join(values)}".strip()
    return Place(problems=(f"no node meets {text!r}; Slurm's features are: {known}",))


def _feature(key: str, value: str) -> str:
    return key.rpartition("/")[2] if value in ("", "true") else value


def _met(label: str | None, operator: str, values: Sequence[str]) -> bool:
    if operator in ("Gt", "Lt"):
        if label is None or not label.lstrip("-").isdigit():
            return False
        return int(label) > int(values[0]) if operator == "Gt" else int(label) < int(values[0])
    return {
        "In": label in values,
        "NotIn": label not in values,
        "Exists": label is not None,
        "DoesNotExist": label is None,
    }[operator]
