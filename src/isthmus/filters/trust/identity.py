"""The identity of a cluster, of deployer and nodes, and the version of a node's programs.

A cluster's identity is a random id: on the deployer beside the secrets, on each node in
/etc/isthmus/cluster.json. Different ids mean that a run would rekey a live cluster.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from hashlib import sha256
from pathlib import Path

from isthmus.filters.errors import InputError

ADOPT = "playbooks/adopt_secrets.yml"


def base_identity_problems(on_nodes: Iterable[str], on_deployer: str, path: str, name: str = "") -> list[str]:
    """Compare the nodes' cluster.json with the deployer's id.

    Args:
        on_nodes: contents of /etc/isthmus/cluster.json, "" where a node has none.
        on_deployer: the deployer's cluster.id, "" when it has none.
        path: where the deployer keeps it, for the message.
        name: the cluster's; two clusters with one id would share their keys in etcd.

    Returns:
        At most one problem with its remedy; empty when the deployer may go on.
    """
    documents = [json.loads(text) for text in on_nodes if text.strip()]
    found = {each["id"] for each in documents}
    if not found:
        return []
    if not on_deployer.strip():
        return [f"the cluster is live but its secrets are not here ({path}); run {ADOPT} to restore them"]
    if found != {on_deployer.strip()}:
        return [
            f"the host belongs to another cluster than {path} names; set NAME or XDG_STATE_HOME to the deployer's"
            f" folder of that cluster, or move {path} away and run {ADOPT}"
        ]
    others = sorted({each.get("name", name) for each in documents} - {name})
    if name and others:
        return [
            f"the host belongs to cluster {others[0]}, which has the id that {path} gives to {name} too: a copied"
            f" folder; set NAME to {others[0]}, or move {path} away for an id of {name}'s own"
        ]
    return []


def base_folder_is_closed(path: str) -> bool:
    """Return whether a folder of the deployer exists with mode 0700."""
    folder = Path(path)
    return folder.is_dir() and folder.stat().st_mode & 0o7777 == 0o700


def base_live_secrets(files: Sequence[str]) -> list[dict[str, str]]:
    """Return the secrets that a deployer can adopt from a live controller.

    Args:
        files: contents of cluster.json, munge.key and slurmdbd.conf, "" for missing ones.

    Returns:
        One dict per secret: name (the file's on the deployer) and content.
    """
    cluster, munge, slurmdbd = files
    password = re.search(r"^\s*StoragePass\s*=\s*(\S+)", slurmdbd, re.MULTILINE | re.IGNORECASE)
    secrets = {
        "cluster.id": json.loads(cluster)["id"],
        "munge.key": munge,
        "slurmdbd.password": password[1] if password else "",
    }
    return [{"name": name, "content": content} for name, content in secrets.items() if content]


def base_program_key(root: str) -> str:
    """Return the key of the nodes' venv: sixteen hex digits over lock file, licence, package with all its files.

    Args:
        root: the project's folder, or a copy of these parts of it.

    Raises:
        InputError: the folder has no lock file.
    """
    top = Path(root)
    lock = top / "locks" / "runtime.txt"
    if not lock.is_file():
        raise InputError(f"{lock} is missing", "restore it with git checkout, or make lock")
    digest = sha256()
    package = [path for path in (top / "src" / "isthmus").rglob("*") if path.is_file() and path.suffix != ".pyc"]
    for path in (lock, top / "pyproject.toml", top / "LICENSE", *sorted(package)):
        digest.update(f"{path.relative_to(top)}\0".encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]
