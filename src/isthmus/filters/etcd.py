"""etcd: addresses of members, access of users, and changes of membership, which are refused.

The members are computed from the inventory, so a run with `--limit` gives each of them the same list. etcd reads it
only when it begins without data; a cluster that has data keeps its members, whatever the inventory says, so a
difference is refused before anything is changed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import yaml

from isthmus.filters.errors import InputError
from isthmus.model import skew

ROOT = "root"
_MEMBERS_OWN = {"root.password", "token.key"}
_RESTORE = "back etcd up (playbooks/backup.yml) and restore it with the new members (playbooks/restore.yml)"


def etcd_urls(members: Iterable[str], hostvars: Mapping[str, Mapping[str, Any]], port: int | str) -> dict[str, str]:
    """Return member -> https URL."""
    return {member: f"https://{hostvars[member]['base_address']}:{port}" for member in sorted(members)}


def etcd_initial_cluster(urls: Mapping[str, str]) -> str:
    """Return `initial-cluster` from the result of `etcd_urls` for peers."""
    return ",".join(f"{member}={url}" for member, url in urls.items())


def etcd_accounts(
    users: Iterable[Mapping[str, Any]], prefix: str, passwords: Mapping[str, str]
) -> list[dict[str, Any]]:
    """Return the accounts for module etcd_access: root, and each user with their keys below the prefix.

    Args:
        users: etcd_users.
        prefix: of all keys of this cluster.
        passwords: user -> password, root's too.
    """
    grants: dict[str, list[dict[str, str]]] = {ROOT: []}
    for user in users:
        grants[user["name"]] = [
            {"prefix": f"{prefix}{grant['prefix']}", "access": grant["access"]} for grant in user["grants"]
        ]
    return [{"name": name, "password": passwords[name], "grants": granted} for name, granted in grants.items()]


def etcd_member_problems(states: Mapping[str, Mapping[str, Any]], wanted: Mapping[str, str]) -> list[str]:
    """Compare the members that have data with those of the inventory.

    Args:
        states: member -> result of module `etcd_state`: settings (its etcd.yml), has_data; empty for a member that
            did not answer.
        wanted: member -> URL for peers, as the inventory has it.

    Returns:
        At most one problem with its remedy; empty when all may start.
    """
    for member, state in states.items():
        if not state.get("has_data"):
            continue
        present = _members(state["settings"])
        if present != wanted:
            before = etcd_initial_cluster(present) or "nobody knows which"
            return [f"{member} has the data of a cluster with other members ({before}); {_RESTORE}"]
    return []


def etcd_version_problems(states: Mapping[str, Mapping[str, Any]], wanted: str) -> list[str]:
    """Return at most one problem: a member that runs another release, which takes the waits of an upgrade.

    Args:
        states: member -> result of module `etcd_state`; empty for a member that did not answer.
        wanted: version of this tree.
    """
    for member, state in states.items():
        running = state.get("version", "")
        if running and skew.release(running) != skew.release(wanted):
            return [
                f"{member} runs etcd {running} and this Isthmus brings {wanted}; run playbooks/upgrade.yml, which"
                " changes one member after the other, and lets etcd go back by a release where that is wanted"
            ]
    return []


def etcd_programs(obtained: Mapping[str, Mapping[str, Any]], folder: str) -> list[dict[str, str]]:
    """Return the entries of `host_copies` for a member; obtained: name -> path, as role `artifacts` registers."""
    return [{"src": row["path"], "dest": f"{folder}/{name}", "mode": "0755"} for name, row in obtained.items()]


def etcd_secrets(files: Iterable[str], folder: str) -> list[dict[str, str]]:
    """Return the entries of `host_copies` for the deployer's secrets.

    The user etcd can read the data anyway, so it may read root's password and the key of tokens, too.
    """
    return [
        {
            "src": file,
            "dest": f"{folder}/{Path(file).name}",
            "group": "etcd",
            "mode": "0640" if Path(file).name in _MEMBERS_OWN else "0600",
        }
        for file in files
    ]


def _members(settings: str) -> dict[str, str]:
    try:
        row = yaml.safe_load(settings) or {}
        pairs = [word.partition("=") for word in row.get("initial-cluster", "").split(",") if word]
    except (yaml.YAMLError, AttributeError) as error:
        raise InputError("etcd.yml of a live member cannot be read", "restore it from a copy or a snapshot") from error
    return {name: url for name, _, url in pairs}


FILTERS: dict[str, Callable[..., object]] = {
    "etcd_accounts": etcd_accounts,
    "etcd_initial_cluster": etcd_initial_cluster,
    "etcd_member_problems": etcd_member_problems,
    "etcd_programs": etcd_programs,
    "etcd_secrets": etcd_secrets,
    "etcd_urls": etcd_urls,
    "etcd_version_problems": etcd_version_problems,
}
