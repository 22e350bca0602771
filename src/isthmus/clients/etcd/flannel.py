"""Reconciles Flannel's configuration in etcd, and its owner.

Every node's subnet follows from the range, so the range stays while nodes have subnets. A second cluster with the same
prefix would give the same subnets to its own nodes: the first one's name is kept beside the configuration, and any
other is refused.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import closing
from typing import Any

from isthmus.clients.etcd.store import Access, Delete, Etcd, Found, Put
from isthmus.clients.etcd.wire import Entry

USER = "flannel"
# flannel-io/flannel, pkg/subnet/etcd/registry.go.
_CONFIG, _SUBNETS = "config", "subnets/"
_OWNER = "cluster"
# What subnets depend on; the rest may change under them.
_FIXED = ("Network", "SubnetLen")


class RefusedError(Exception):
    """Nothing was changed; the message says why, and the remedy."""


def apply(access: Access, prefix: str, owner: str, config: Mapping[str, Any], *, dry: bool = False) -> list[str]:
    """Bring the configuration about.

    Args:
        access: of the user flannel.
        prefix: of all its keys, with a slash at the end.
        owner: the cluster, as no other is called.
        config: flanneld's configuration; empty to remove all keys.
        dry: only return what would be done.

    Returns:
        What was done, or would be; empty when all was as it should be.

    Raises:
        RefusedError: the prefix is another cluster's, or nodes have subnets of another range.
        EtcdError: etcd did not do it.
    """
    with closing(Etcd(access)) as etcd:
        found = etcd.range(prefix)
        there = found.entries.get(f"{prefix}{_CONFIG}")
        _check_owner(found, prefix, owner)
        if not config:
            done = [f"remove {prefix}"] if found.entries else []
            steps: list[Put | Delete] = [Delete(prefix, below=True)]
        else:
            text = json.dumps(config, sort_keys=True)
            done = [f"write {prefix}{_CONFIG}"] if there is None or there.value != text else []
            steps = [Put(f"{prefix}{_CONFIG}", text), Put(f"{prefix}{_OWNER}", owner)]
            if done:
                _check_range(found, prefix, there, config)
        if done and not dry:
            unchanged = {f"{prefix}{_CONFIG}": there.revision if there else 0}
            if not etcd.transact(unchanged, steps).succeeded:
                raise RefusedError(f"somebody else changed {prefix}{_CONFIG} meanwhile; run this again")
        return done


def _check_owner(found: Found, prefix: str, owner: str) -> None:
    if not found.entries:
        return
    entry = found.entries.get(f"{prefix}{_OWNER}")
    present = entry.value if entry else "nobody knows whose"
    if present != owner:
        raise RefusedError(
            f"etcd has another cluster's Flannel below {prefix} ({present}, this is {owner}); two clusters need a state"
            f" folder each, or delete it (isthmus-etcdctl del --prefix {prefix}) if that cluster is no more"
        )


def _check_range(found: Found, prefix: str, there: Entry | None, config: Mapping[str, Any]) -> None:
    try:
        before = json.loads(there.value) if there else config
    except ValueError:
        before = {}
    subnets = sum(key.startswith(f"{prefix}{_SUBNETS}") for key in found.entries)
    if subnets and any(before.get(key) != config[key] for key in _FIXED):
        raise RefusedError(
            f"{subnets} nodes have subnets of {before.get('Network')} (/{before.get('SubnetLen')} each), and"
            f" {config['Network']} (/{config['SubnetLen']}) is wanted; set it back, or take flannel out of"
            " network_drivers, run the playbook, and put it in again"
        )
