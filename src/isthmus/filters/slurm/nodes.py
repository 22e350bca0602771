"""Nodes: their names folded, their hardware from facts or the inventory, and the text of nodes.conf."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import fields
from typing import Any

from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet

from isthmus.filters.errors import InputError
from isthmus.filters.slurm.conf import conf_value
from isthmus.filters.suggest import check_keys
from isthmus.model.slurm.hardware import Hardware

# Reserved for the system (slurmd, sshd, page cache) where memory comes from facts.
SYSTEM_MEMORY_SHARE = 0.05
SYSTEM_MEMORY_MIN_MIB = 256

_LAYOUT = ("sockets", "cores_per_socket", "threads_per_core")
_NUMBERS = ("cpus", "memory_mib", *_LAYOUT, "weight")
_KEYS = tuple(field.name for field in fields(Hardware))
_SLURM_KEYS = {
    "cpus": "CPUs",
    "sockets": "Sockets",
    "cores_per_socket": "CoresPerSocket",
    "threads_per_core": "ThreadsPerCore",
    "memory_mib": "RealMemory",
    "gres": "Gres",
    "features": "Features",
    "weight": "Weight",
}
# A name or an address without characters that Slurm or ClusterShell expand.
_PLAIN = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._:-]*[A-Za-z0-9])?")


def slurm_fold(names: Iterable[str]) -> str:
    """Fold node names: `['c1', 'c2', 'login']` -> `c[1-2],login`.

    At most the last number of a name is folded, which every Slurm version expands. Source: ClusterShell.

    Raises:
        InputError: for a name with other characters than letters, digits, `.`, `_`, `:` and `-`.
    """
    return str(_node_set(names))


def slurm_expand(folded: str) -> list[str]:
    """Undo `slurm_fold`, in the order Slurm expands it."""
    return [str(name) for name in NodeSet(folded, resolver=RESOLVER_NOGROUP)]


def slurm_hardware(facts: Mapping[str, Any], declared: Mapping[str, Any]) -> dict[str, Any]:
    """Return a node's hardware: what the inventory declares, else what Ansible's facts found.

    Args:
        facts: `ansible_facts` of the node: processor_vcpus, processor_count (sockets), processor_cores,
            processor_threads_per_core, memtotal_mb (MiB in spite of its name). May be empty.
        declared: `slurm_node`: cpus, memory_mib, sockets, cores_per_socket, threads_per_core, gres,
            features, weight.

    Returns:
        The known keys of `declared`. Of the facts' memory 5 % (at least 256 MiB) is reserved for the system; declared
        memory is used as it is. Facts give a layout only together with the CPUs.

    Raises:
        InputError: for an unknown key, an invalid number, a layout that does not match the CPUs, or unknown CPUs or
            memory.
    """
    check_keys("slurm_node", declared, _KEYS)
    known = {**_from_facts(facts), **declared}
    if "cpus" in declared or any(key in declared for key in _LAYOUT):
        known = {key: value for key, value in known.items() if key not in _LAYOUT or key in declared}
    for key in ("cpus", "memory_mib"):
        if known.get(key) is None:
            raise InputError(f"nobody knows {key} of the node", f"set slurm_node.{key}, or gather facts")
    _check_numbers(known)
    return known


def slurm_nodes(hosts: Sequence[Mapping[str, Any]], cloud: Collection[str] = ()) -> str:
    """Write nodes.conf: hosts of equal hardware share a line.

    Args:
        hosts: one dict per compute node: name, address, and what `slurm_hardware` returns (memory in MiB).
        cloud: names of those that Slurm starts when jobs wait.

    Returns:
        Lines sorted by name. NodeAddr is folded where it expands to the order of the names, else each
        node has its own line.

    Raises:
        InputError: without hosts, for a name or address given twice, or bad hardware.
    """
    if not hosts:
        raise InputError("there is no compute node", "put at least one host into the group compute")
    addresses: dict[str, str] = {}
    alike: defaultdict[tuple[Hardware, str], list[str]] = defaultdict(list)
    for host in hosts:
        check_keys("a compute node", host, ("name", "address", *_KEYS), required=["name", "address"])
        name, address = str(host["name"]), str(host["address"])
        if name in addresses or address in addresses.values():
            raise InputError(f"node {name} ({address}) has a name or address in use", "give each node its own")
        addresses[name] = address
        alike[_hardware(host), "CLOUD" if name in cloud else "UNKNOWN"].append(name)
    groups = sorted(alike.items(), key=lambda item: min(item[1]))
    return "".join(_node_lines(names, addresses, *shape) for shape, names in groups)


def words(value: str | Iterable[str]) -> tuple[str, ...]:
    """Return a list of words, which an inventory may also write as text with commas."""
    return tuple(value.split(",")) if isinstance(value, str) else tuple(map(str, value))


def _node_set(names: Iterable[str]) -> NodeSet:
    plain = [str(name) for name in names]
    for name in plain:
        if not _PLAIN.fullmatch(name):
            raise InputError(f"{name!r} is no name of a node", "use letters, digits, '.', '_' and '-'")
    nodes = NodeSet.fromlist(plain, resolver=RESOLVER_NOGROUP)
    nodes.fold_axis = (-1,)
    return nodes


def _from_facts(facts: Mapping[str, Any]) -> dict[str, Any]:
    found = {
        "cpus": facts.get("processor_vcpus"),
        "sockets": facts.get("processor_count"),
        "cores_per_socket": facts.get("processor_cores"),
        "threads_per_core": facts.get("processor_threads_per_core"),
    }
    sockets, cores, threads = (found[key] or 1 for key in _LAYOUT)
    if found["cpus"] != sockets * cores * threads:
        # Some virtual machines report an inconsistent layout; Slurm needs none.
        found = {"cpus": found["cpus"]}
    if total := facts.get("memtotal_mb"):
        found["memory_mib"] = total - max(SYSTEM_MEMORY_MIN_MIB, int(total * SYSTEM_MEMORY_SHARE))
    return {key: value for key, value in found.items() if value is not None}


def _check_numbers(known: Mapping[str, Any]) -> None:
    for key in _NUMBERS:
        value = known.get(key, 1)
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise InputError(f"slurm_node.{key} is {value!r}", "give a whole number of at least 1")
    sockets, cores, threads = (known.get(key, 1) for key in _LAYOUT)
    given = any(key in known for key in _LAYOUT)
    if given and known["cpus"] not in (sockets * cores, sockets * cores * threads):
        raise InputError(
            f"{sockets} sockets x {cores} cores x {threads} threads do not give {known['cpus']} CPUs",
            "correct slurm_node.cpus or the layout, or leave the layout out",
        )


def _hardware(host: Mapping[str, Any]) -> Hardware:
    known = slurm_hardware({}, {key: value for key, value in host.items() if key not in ("name", "address")})
    gres, features = words(known.pop("gres", ())), words(known.pop("features", ()))
    return Hardware(**known, gres=gres, features=features)


def _node_lines(names: Iterable[str], addresses: Mapping[str, str], hardware: Hardware, state: str) -> str:
    folded = slurm_fold(names)
    ordered = slurm_expand(folded)
    wanted = [addresses[name] for name in ordered]
    folded_address = slurm_fold(wanted)
    pairs = [(folded, folded_address)]
    if slurm_expand(folded_address) != wanted:
        pairs = list(zip(ordered, wanted, strict=True))
    settings = " ".join(
        f"{slurm_key}={conf_value(key, value)}"
        for key, slurm_key in _SLURM_KEYS.items()
        if (value := getattr(hardware, key)) not in (None, ())
    )
    return "".join(f"NodeName={name} NodeAddr={address} {settings} State={state}\n" for name, address in pairs)
