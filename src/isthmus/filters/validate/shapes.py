"""Shapes of the variables that validation reads: lists, dicts, text.

Each role checks all its arguments when it starts; later ones do so after earlier ones have changed nodes. These few are
checked before, and the other checks rely on them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from isthmus.filters.validate.site import Site

# A list's one item is the shape of all items, an empty list any; a dict's `name` must be there, other keys may.
_LIMITED = [{"name": str, "limits": {}}]
_SHAPES: dict[str, Any] = {
    "apptainer_conf": {},
    "apptainer_net_networks": [str],
    "apptainer_net_users": [str],
    "apptainer_networks": {},
    "apptainer_registry_mirrors": {},
    "apptainer_setuid": bool,
    "apptainer_subid_count": int,
    "apptainer_subids": [{"name": str, "start": int, "count": int}],
    "base_site_groups": [str],
    "base_users": [{"name": str, "uid": int, "password_hash": str}],
    "etcd_conf_extra": {},
    "etcd_users": [{"name": str, "grants": [{}]}],
    "network_admin_users": [str],
    "network_dns_upstreams": [str],
    "network_egress": [{"users": [str], "ports": []}],
    "network_host_ports": [{}],
    "network_partition_drivers": {},
    "network_search_domains": [str],
    "network_user_drivers": {},
    "slurm_accounts": _LIMITED,
    "slurm_cloud_nodes": [str],
    "slurm_conf_extra": {},
    "slurm_conf_files": {},
    "slurm_dbd_purge_after": {},
    "slurm_gres_conf": [{}],
    "slurm_partitions": [{"name": str, "nodes": [str], "options": {}}],
    "slurm_priority_weights": {},
    "slurm_qos": _LIMITED,
    "slurm_users": _LIMITED,
}
_HOST_SHAPES: dict[str, Any] = {"slurm_node": {}}
_WORDS = {bool: "true or false", dict: "a dict", int: "a whole number", list: "a list", str: "text"}


def shape_problems(site: Site) -> Iterator[str]:
    """Yield values of another type than their checks expect; no message repeats a value."""
    if not site.hosts:
        return
    for variable, shape in _SHAPES.items():
        yield from _problems(site, variable, variable, site.shared(variable), shape)
    for host in site.group("compute"):
        for variable, shape in _HOST_SHAPES.items():
            where = f"{variable} of host {host}"
            yield from _problems(site, variable, where, site.read(host, variable), shape)


def _problems(site: Site, variable: str, where: str, value: Any, shape: Any) -> Iterator[str]:
    if value is not None:
        for part, found, wanted in _misfits(value, shape, where):
            yield site.problem(f"{part} is {found}", f"write {wanted}", variable)


def _misfits(value: Any, shape: Any, where: str) -> Iterator[tuple[str, str, str]]:
    kind: Any = shape if isinstance(shape, type) else type(shape)
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        yield where, _word(value), _WORDS[kind]
    elif isinstance(shape, list):
        for position, item in enumerate(value if shape else ()):
            yield from _misfits(item, shape[0], f"{where}[{position}]")
    elif isinstance(shape, Mapping):
        for key, inner in shape.items():
            if value.get(key) is not None:
                yield from _misfits(value[key], inner, f"{where}.{key}")
            elif key == "name":
                yield f"{where}.name", "missing", _WORDS[inner]


def _word(value: Any) -> str:
    words = (word for kind, word in _WORDS.items() if isinstance(value, kind))
    return next(words, "empty" if value is None else f"a {type(value).__name__}")
