"""Generic resources of nodes: their names for slurm.conf, and gres.conf."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from isthmus.filters.errors import InputError
from isthmus.filters.slurm.conf import conf_key, conf_value
from isthmus.filters.slurm.nodes import slurm_fold, words

# slurmd ignores these without device files.
_DEVICES = ("gpu", "mps", "shard")
_GRES = re.compile(r"(?P<name>\w+)(:(?P<type>[A-Za-z_][\w.-]*))?:(?P<count>[0-9]+[KMGTP]?)")


def slurm_gres_types(hosts: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the names of all generic resources of nodes, for GresTypes: `gpu:a100:4` and `gpu:2` -> `gpu`."""
    return sorted({each.partition(":")[0] for host in hosts for each in words(host.get("gres", ()))})


def slurm_gres(hosts: Sequence[Mapping[str, Any]], said: Sequence[Mapping[str, object]]) -> str:
    """Write gres.conf.

    Args:
        hosts: as for `slurm_nodes`.
        said: an administrator's lines, keys as in gres.conf(5). Other resources have the counts that nodes declare,
            without devices: Slurm counts them, but does not constrain or name devices.

    Raises:
        InputError: for a key or a value that Slurm cannot read, a generic resource without a count, or GPUs
            without devices, which slurmd ignores.
    """
    lines = "".join(map(_line, said))
    keys = [(key.lower(), str(value)) for line in said for key, value in line.items()]
    named = {value for key, value in keys if key == "name"}
    if any(key == "autodetect" for key, _ in keys):
        named.update(_DEVICES)
    alike: defaultdict[str, list[str]] = defaultdict(list)
    for host in hosts:
        for each in words(host.get("gres", ())):
            if each.partition(":")[0] not in named:
                alike[_counted(each)].append(str(host["name"]))
    return lines + "".join(f"NodeName={slurm_fold(names)} {resource}\n" for resource, names in sorted(alike.items()))


def _line(settings: Mapping[str, object]) -> str:
    return " ".join(f"{conf_key(key)}={conf_value(key, value)}" for key, value in settings.items()) + "\n"


def _counted(gres: str) -> str:
    found = _GRES.fullmatch(gres)
    if found is None:
        raise InputError(f"slurm_node.gres has {gres!r}", "write name:count or name:type:count, e.g. gpu:a100:2")
    if found["name"] in _DEVICES:
        remedy = 'write slurm_gres_conf, e.g. [{Name: gpu, File: "/dev/nvidia[0-1]"}] or [{AutoDetect: nvml}]'
        raise InputError(f"slurm_node.gres has {gres!r}, and nobody says which devices these are", remedy)
    kind = f" Type={found['type']}" if found["type"] else ""
    return f"Name={found['name']}{kind} Count={found['count']}"
