"""The composition root: from a task's arguments to servers in a cloud, as Ansible's result.

    state: present   all resources of the inventory, or with `only` the servers of some nodes
    state: absent    no resource of this cluster, or with `only` no servers of some nodes

A run observes the cloud once, computes a plan, and then creates or deletes wave by wave, the resources of a wave
concurrently. The record is written between waves, so that the next run continues after one that was killed.
"""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from isthmus.clients.openstack.change import Changes
from isthmus.clients.openstack.connection import CloudError, Connection, connect, region_of
from isthmus.clients.openstack.look import look
from isthmus.cloud import ownership
from isthmus.cloud.desired import UNMARKED_NAMES, desired
from isthmus.cloud.plan import Plan, plan, removal
from isthmus.cloud.recorded import Recorded
from isthmus.cloud.refuse import refuse
from isthmus.cloud.work import Work
from isthmus.filters.errors import InputError
from isthmus.filters.provider.openstack import Settings, read
from isthmus.filters.suggest import check_keys
from isthmus.model.cloud import Cloud, Kind, Verb

Progress = Callable[[str], None]
SETTINGS = (
    *("cloud", "region", "identity", "record", "cluster", "nodes", "machines", "image", "image_file"),
    *("image_digest", "boot_gib", "home_gib", "home_keep", "spread", "spread_policy", "cidr", "dns", "dhcp"),
    *("external", "login_sources", "pod_ranges", "public_key", "timeout_s"),
)


def run(arguments: Mapping[str, Any], progress: Progress, *, dry: bool = False) -> dict[str, Any]:
    """Reconcile a cluster's resources; return Ansible's result.

    Args:
        arguments: `state`, `only` (nodes; none for all) and `settings`, all of SETTINGS.
        progress: called with a line of progress.
        dry: change nothing, return the plan.

    Returns:
        `plan` (lines), `notes`, `servers` (node -> id, status, address) and `entry` (floating IP).
    """
    try:
        check_keys("openstack_cluster", arguments, ("state", "only", "settings"), ("state", "settings"))
        check_keys("settings of openstack_cluster", arguments["settings"], SETTINGS)
        given = {**arguments["settings"], "only": arguments.get("only") or []}
        return _absent(given, progress, dry) if arguments["state"] == "absent" else _present(given, progress, dry)
    except (InputError, CloudError, OSError) as error:
        return {"failed": True, "msg": str(error)}


@contextmanager
def _naming_what_is_there(recorded: Recorded) -> Iterator[None]:
    """Add to an error what this cluster has in the cloud by now, as servers and addresses cost money."""
    try:
        yield
    except CloudError as error:
        made = dict(recorded.current.made) if recorded.current else {}
        counts = Counter(str(kind) for kind, _ in made)
        there = ", ".join(f"{kind} {count}" for kind, count in sorted(counts.items())) or "nothing"
        raise CloudError(str(error), f"this cluster has in the cloud: {there} (names: {recorded.path})") from error


def _present(arguments: Mapping[str, Any], progress: Progress, dry: bool) -> dict[str, Any]:
    settings = read(arguments)
    only = [settings.name(node) for node in arguments["only"]] or None
    connection = connect(str(arguments["cloud"]), str(arguments["region"]))
    with Recorded(Path(arguments["record"]), dry=dry) as recorded:
        _refuse_other_region(recorded, connection)
        cloud = look(connection)
        record = _checked(recorded, cloud, str(arguments["cluster"]), str(arguments["identity"]))
        mark = ownership.mark(settings.cluster, record.identity)
        chosen = plan(cloud, desired(settings), record, mark, only)
        refuse(settings, cloud.offer, chosen.steps)
        if not dry:
            recorded.save(replace(record, project=cloud.offer.project, region=cloud.offer.region))
            with _naming_what_is_there(recorded):
                changes = Changes(connection, mark, cloud.offer.ids)
                Work(changes, recorded, progress, settings.timeout_s).make(chosen)
        return _result(settings, chosen, recorded, cloud)


def _refuse_other_region(recorded: Recorded, connection: Connection) -> None:
    """Refuse before its services are asked: a region may lack some that this cluster does not need there."""
    record, chosen = recorded.load(), region_of(connection)
    if record and record.region and record.region != chosen:
        raise InputError(
            f"{recorded.path} is of region {record.region!r}, the inventory chooses {chosen!r}",
            "choose that region, or give the cluster in this one a name of its own",
        )


def _checked(recorded: Recorded, cloud: Cloud, cluster: str, identity: str) -> ownership.Record:
    record = recorded.load() or _first(cluster, identity)
    if record.project and record.project != cloud.offer.project:
        raise InputError(
            f"{recorded.path} is of project {record.project}, these credentials of {cloud.offer.project}",
            "log in to that project, or give this cluster a name of its own",
        )
    if identity and identity != record.identity:
        raise InputError(
            f"{recorded.path} has identity {record.identity}, provider_openstack_identity is {identity}",
            "remove one of them",
        )
    return record


def _first(cluster: str, identity: str) -> ownership.Record:
    """Return a first record with a new identity; one that replaces a lost record claims unmarked names too."""
    taken = {(kind, f"{cluster}-{name}") for kind, name in UNMARKED_NAMES.items()} if identity else set()
    return ownership.Record(identity or secrets.token_hex(4), begun=frozenset(taken))


def _result(settings: Settings, chosen: Plan, recorded: Recorded, cloud: Cloud) -> dict[str, Any]:
    record = recorded.current
    addresses = dict(record.addresses) if record else {}
    entry = next(
        (str(one.settings["address"]) for one in chosen.kept if one.kind is Kind.FLOATING_IP),
        addresses.get(settings.name(settings.entry), ""),
    )
    made = {step.name for step in chosen.steps if step.kind is Kind.SERVER and step.verb in (Verb.CREATE, Verb.REPLACE)}
    return {
        "changed": bool(chosen.steps),
        "plan": chosen.lines(),
        "notes": list(chosen.notes),
        "entry": entry,
        "entry_node": settings.entry,
        "created": [name for name in _nodes(settings) if settings.name(name) in made],
        "project": cloud.offer.project,
        "made": [f"{kind} {name}" for kind, name in sorted(dict(record.made if record else {}))],
    }


def _nodes(settings: Settings) -> list[str]:
    return [node for kind in settings.kinds for node in kind.nodes]


def _absent(arguments: Mapping[str, Any], progress: Progress, dry: bool) -> dict[str, Any]:
    path = Path(arguments["record"])
    if not arguments["identity"] and not path.exists():
        return {"changed": False, "plan": [], "notes": [f"{path} is missing: nothing was created"]}
    with Recorded(path, dry=dry) as recorded:
        connection = connect(str(arguments["cloud"]), str(arguments["region"]))
        _refuse_other_region(recorded, connection)
        cloud = look(connection, offers=False)
        record = _checked(recorded, cloud, str(arguments["cluster"]), str(arguments["identity"]))
        cluster = str(arguments["cluster"])
        mark = ownership.mark(cluster, record.identity)
        named = _named(cluster, arguments["only"])
        steps = removal(cloud, record, mark, named, keep_volumes=bool(arguments["home_keep"]))
        if not dry:
            recorded.save(record)
            with _naming_what_is_there(recorded):
                Work(Changes(connection, ""), recorded, progress, int(arguments["timeout_s"])).remove(steps)
        return {"changed": bool(steps), "plan": [str(step) for step in steps], "notes": []}


def _named(cluster: str, nodes: Iterable[str]) -> list[tuple[Kind, str]] | None:
    names = [f"{cluster}-{node}" for node in nodes]
    return [(kind, name) for name in names for kind in (Kind.SERVER, Kind.PORT)] if names else None
