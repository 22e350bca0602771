"""Addresses of nodes, as recorded by the last run that created or described the cluster.

The inventory's names are the site's, AWS has instances: the head node is the controller, login nodes are counted in the
order of their ids, and compute nodes bear Slurm's names, from ParallelCluster's table.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

_NOWHERE = {"private": "", "public": ""}


def where(text: str, host: str, groups: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """Return a host's `private` and `public` addresses, "" for one that is not there, or not yet.

    Args:
        text: the file that the role writes; empty before it is there.
        host: name in the inventory.
        groups: Ansible's.
    """
    instances = _instances(text)
    if host in groups.get("controller", ()):
        found = [each for each in instances if each["role"] == "head"]
    elif host in groups.get("login", ()):
        logins = sorted((each for each in instances if each["role"] == "login"), key=lambda each: str(each["id"]))
        place = list(groups["login"]).index(host)
        found = logins[place : place + 1]
    else:
        found = [each for each in instances if each["node"] == host]
    return {key: str(found[0].get(key) or "") for key in _NOWHERE} if found else dict(_NOWHERE)


def _instances(text: str) -> list[dict[str, Any]]:
    document = json.loads(text) if text.strip() else {}
    return [each for each in document.get("instances", []) if each.get("state") in ("pending", "running")]
