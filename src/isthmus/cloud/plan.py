"""Computes the steps from the observed to the desired resources. Pure; a second plan after these steps is empty.

Properties that cannot be changed in place without losing a node's data (a flavor, an image) are not changed: the plan
notes them, and `remove_nodes` and `add_nodes` replace the node. A failed server is replaced, a stopped one is started.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from isthmus.cloud.ownership import Record, is_ours, refuse_strangers
from isthmus.filters.errors import InputError
from isthmus.model.cloud import WAVES, Cloud, Found, Kind, Step, Verb, Wanted

# nova's status -> the action that starts the server.
ASLEEP = {
    "SHUTOFF": "it is shut off",
    "PAUSED": "it is paused",
    "SUSPENDED": "it is suspended",
    "SHELVED": "it is shelved",
    "SHELVED_OFFLOADED": "it is shelved",
}
FAILED = ("ERROR", "DELETED", "SOFT_DELETED", "UNKNOWN")
# Settings that can be changed in place, by kind.
_MUTABLE = {
    Kind.KEY_PAIR: ("public_key",),
    Kind.SUBNET: ("dns", "dhcp"),
    Kind.ROUTER: ("external", "subnet"),
    Kind.SECURITY_GROUP: ("rules",),
    Kind.PORT: ("groups", "pairs"),
    Kind.VOLUME: ("gib",),
    Kind.FLOATING_IP: ("port",),
}
# Settings whose change needs new servers, or another network: refused.
_FIXED = {Kind.SUBNET: ("network", "cidr"), Kind.PORT: ("network", "address"), Kind.SERVER_GROUP: ("policy",)}
# Settings that take effect with the next server of this name.
_LATER = {Kind.SERVER: ("flavor", "image")}


@dataclass(frozen=True)
class Plan:
    """Steps by kind: those of a wave can run concurrently, waves run in order.

    Attributes:
        kept: resources that need no change.
        notes: for the administrator, one line each.
    """

    steps: Sequence[Step]
    kept: Sequence[Found]
    notes: Sequence[str]

    def waves(self) -> Iterator[list[Step]]:
        """Yield the steps that create or change, wave by wave."""
        yield from waves([step for step in self.steps if step.verb is not Verb.DELETE])

    def lines(self) -> list[str]:
        """Return the plan as text."""
        return [str(step) for step in self.steps]


def waves(steps: Iterable[Step], order: Iterable[Sequence[Kind]] = WAVES) -> Iterator[list[Step]]:
    """Yield what can be done at once, those of one kind together."""
    found = list(steps)
    for kinds in order:
        wave = [step for kind in kinds for step in found if step.kind is kind]
        if wave:
            yield wave


def plan(cloud: Cloud, wanted: Sequence[Wanted], record: Record, ours: str, only: Iterable[str] | None = None) -> Plan:
    """Compare observed and desired resources.

    Args:
        cloud: the observed resources.
        wanted: the desired resources.
        record: what this deployer has created.
        ours: the cluster's mark.
        only: names of the servers and ports that may be changed now; None for all.

    Raises:
        InputError: a foreign resource has a name that is needed, or a change is not possible.
    """
    refuse_strangers(cloud.found, ((one.kind, one.name) for one in wanted), record, ours)
    mine = _by_name(found for found in cloud.found if is_ours(found, record, ours))
    names = None if only is None else set(only)
    steps: list[Step] = []
    kept: list[Found] = []
    notes: list[str] = []
    for one in wanted:
        found = mine.get((one.kind, one.name))
        if names is not None and one.kind in (Kind.PORT, Kind.SERVER) and one.name not in names:
            kept += [found] if found else []
            continue
        step = _step(one, found)
        if step:
            steps.append(step)
        elif found:
            kept.append(found)
            notes += _later(one, found)
    steps += _old_images(mine, wanted, cloud.found)
    steps += _old_addresses(mine, wanted)
    return Plan(steps, kept, notes + _not_wanted(mine, wanted))


def _by_name(found: Iterable[Found]) -> dict[tuple[Kind, str], Found]:
    return {(one.kind, one.name): one for one in found}


def _step(wanted: Wanted, found: Found | None) -> Step | None:
    if found is None:
        return Step(Verb.CREATE, wanted, None)
    if wanted.kind in (Kind.SERVER, Kind.VOLUME, Kind.IMAGE):
        woken = _by_status(wanted, found)
        if woken:
            return woken
    for key in _FIXED.get(wanted.kind, ()):
        if _differs(wanted, found, key):
            have, want = found.settings[key], wanted.settings[key]
            raise InputError(
                f"{wanted.kind} {wanted.name} has {key} {have!r}, the inventory {want!r}",
                "put the old value back, or tear the cluster down first",
            )
    changed = [key for key in _MUTABLE.get(wanted.kind, ()) if _differs(wanted, found, key)]
    if wanted.kind is Kind.VOLUME and changed and wanted.settings["gib"] < found.settings["gib"]:
        raise InputError(
            f"volume {wanted.name} has {found.settings['gib']} GiB, the inventory {wanted.settings['gib']}",
            "volumes grow only: put the old size back",
        )
    return Step(Verb.UPDATE, wanted, found, ", ".join(changed)) if changed else None


def _by_status(wanted: Wanted, found: Found) -> Step | None:
    status = found.status.upper()
    if status in FAILED or (wanted.kind is not Kind.SERVER and status.startswith("ERROR")) or status == "KILLED":
        return Step(Verb.REPLACE, wanted, found, f"it is in state {found.status}")
    if wanted.kind is Kind.IMAGE and status in ("QUEUED", "SAVING"):
        return Step(Verb.REPLACE, wanted, found, "its upload was cut off")
    if wanted.kind is Kind.SERVER and status in ASLEEP:
        return Step(Verb.START, wanted, found, ASLEEP[status])
    return None


def _differs(wanted: Wanted, found: Found, key: str) -> bool:
    return key in found.settings and found.settings[key] != wanted.settings[key]


def _later(wanted: Wanted, found: Found) -> Iterator[str]:
    for key in _LATER.get(wanted.kind, ()):
        if found.settings.get(key) and _differs(wanted, found, key):
            yield (
                f"{wanted.name} keeps its {key} {found.settings[key]}, the inventory has {wanted.settings[key]}: "
                "remove_nodes and add_nodes replace it"
            )


def _old_images(
    mine: Mapping[tuple[Kind, str], Found], wanted: Iterable[Wanted], found: Iterable[Found]
) -> Iterator[Step]:
    names = {one.name for one in wanted if one.kind is Kind.IMAGE}
    used: set[Any] = {one.settings.get("image") for one in found if one.kind is Kind.SERVER}
    for (kind, name), one in mine.items():
        if kind is Kind.IMAGE and names and name not in names and name not in used:
            yield Step(Verb.DELETE, None, one, "no server uses it")


def _old_addresses(mine: Mapping[tuple[Kind, str], Found], wanted: Iterable[Wanted]) -> Iterator[Step]:
    names = {one.name for one in wanted if one.kind is Kind.FLOATING_IP}
    for (kind, name), one in mine.items():
        if kind is Kind.FLOATING_IP and name not in names:
            yield Step(Verb.DELETE, None, one, "another node is the entry")


def _not_wanted(mine: Mapping[tuple[Kind, str], Found], wanted: Iterable[Wanted]) -> list[str]:
    # By ports: nodes that Slurm starts have servers only at times.
    names = {one.name for one in wanted if one.kind is Kind.PORT}
    left = sorted(name for kind, name in mine if kind is Kind.SERVER and name not in names)
    return [f"{name} is not in the inventory and stays: remove_nodes removes nodes" for name in left]


def removal(
    cloud: Cloud,
    record: Record,
    ours: str,
    names: Iterable[tuple[Kind, str]] | None = None,
    *,
    keep_volumes: bool = False,
) -> list[Step]:
    """Return the steps that delete the cluster's resources, all or those named; foreign resources are in none.

    Dependent resources are deleted first, in the reverse order of creation.
    """
    wanted = None if names is None else set(names)
    kinds = [kind for kind in reversed(Kind) if not (keep_volumes and kind is Kind.VOLUME)]
    chosen = [
        one
        for one in cloud.found
        if one.kind in kinds and is_ours(one, record, ours) and (wanted is None or (one.kind, one.name) in wanted)
    ]
    return [Step(Verb.DELETE, None, one) for one in sorted(chosen, key=lambda one: (kinds.index(one.kind), one.name))]
