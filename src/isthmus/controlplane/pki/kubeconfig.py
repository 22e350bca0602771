"""Kubeconfigs: of the programs, which name files so that a renewed certificate is seen at once, and of the user.

The user's holds its key and certificate: it may be copied to another machine, and is no secret less for that.

kubectl, and every other program of Kubernetes, looks in ~/.kube/config. Where the user has none it is made, so that
they find the cluster at once, in every shell. A file of the user's gets nothing that was not asked for (`merge`);
entries of ours in it follow the keys.
"""

from __future__ import annotations

import os
from base64 import b64encode
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import yaml

from isthmus.controlplane.errors import ControlPlaneError
from isthmus.controlplane.layout import Layout
from isthmus.support import durable

NAME = "isthmus"
# Of what has a name in a kubeconfig.
_KINDS = ("clusters", "users", "contexts")
# Of a file that is none, or of a home that is full, say: what is the user's goes on without us.
_UNUSABLE = (OSError, UnicodeError, yaml.YAMLError, AttributeError, TypeError, KeyError)


def of_program(program: str, server: str) -> str:
    """Return the kubeconfig of a program, with paths as seen from the folder that it lies in."""
    user = {"client-certificate": f"pki/{program}.crt", "client-key": f"pki/{program}.key"}
    return _text({"server": server, "certificate-authority": "pki/ca.crt"}, user)


def of_user(layout: Layout, server: str) -> str:
    """Return the user's kubeconfig, which holds all it needs."""
    files = (layout.certificate("ca"), layout.certificate("admin"), layout.key("admin"))
    ca, certificate, key = (b64encode(path.read_bytes()).decode() for path in files)
    user = {"client-certificate-data": certificate, "client-key-data": key}
    return _text({"server": server, "certificate-authority-data": ca}, user)


def merge(into: Path, own: Path) -> None:
    """Put the user's own cluster into another kubeconfig and make it the current one; all else there stays.

    Raises:
        ControlPlaneError: the other file is none that can be kept.
    """
    try:
        theirs = yaml.safe_load(into.read_text(encoding="utf-8")) if into.exists() else {}
        merged = _merged(theirs or {}, yaml.safe_load(own.read_text(encoding="utf-8")))
    except (OSError, yaml.YAMLError, AttributeError, TypeError, KeyError) as error:
        raise ControlPlaneError(f"{into} cannot be merged into ({error}); repair it or move it away") from error
    into.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    # A link stays one: people keep such files elsewhere.
    durable.write(into.resolve(), yaml.safe_dump(merged, sort_keys=False), 0o600)


def offer(usual: Path, own: Path) -> bool:
    """Let kubectl find the user's own cluster by itself, if no file of the user's would change; return whether it does.

    Args:
        usual: where kubectl looks; made where nothing is there.
        own: the user's own cluster.
    """
    with suppress(*_UNUSABLE):
        text = own.read_text(encoding="utf-8")
        if not os.path.lexists(usual):
            usual.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            durable.create(usual, text, 0o600)
        refresh(usual, own)
        return bool(_load(usual)["current-context"] == NAME)
    return False


def refresh(usual: Path, own: Path) -> None:
    """Give a kubeconfig that has the user's own cluster the server and the keys of now; all else there stays."""
    with suppress(*_UNUSABLE):
        theirs, mine = _load(usual), _load(own)
        fresh = {
            kind: [mine[kind][0] if each["name"] == NAME else each for each in theirs[kind]]
            for kind in ("clusters", "users")
        }
        if {**theirs, **fresh} != theirs:
            durable.write(usual.resolve(), yaml.safe_dump({**theirs, **fresh}, sort_keys=False), 0o600)


def withdraw(usual: Path) -> bool:
    """Take the user's own cluster out of a kubeconfig; return whether the file is gone, as it had nothing else."""
    with suppress(*_UNUSABLE):
        theirs = _load(usual)
        left = {kind: [each for each in theirs[kind] if each["name"] != NAME] for kind in _KINDS}
        if not any(left.values()) and not usual.is_symlink():
            usual.unlink()
            return True
        if {**theirs, **left} != theirs:
            current = theirs.get("current-context")
            kept = {**theirs, **left, "current-context": "" if current == NAME else current}
            durable.write(usual.resolve(), yaml.safe_dump(kept, sort_keys=False), 0o600)
    return False


def _load(path: Path) -> dict[str, Any]:
    if not path.is_file():
        # A pipe would be waited for.
        raise FileNotFoundError(path)
    found: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    return found


def _merged(theirs: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    lists = {kind: [each for each in theirs.get(kind) or [] if each["name"] != NAME] + own[kind] for kind in _KINDS}
    return {**theirs, "apiVersion": "v1", "kind": "Config", **lists, "current-context": NAME}


def _text(cluster: Mapping[str, str], user: Mapping[str, str]) -> str:
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": NAME, "cluster": dict(cluster)}],
        "users": [{"name": NAME, "user": dict(user)}],
        "contexts": [{"name": NAME, "context": {"cluster": NAME, "user": NAME}}],
        "current-context": NAME,
    }
    return yaml.safe_dump(config, sort_keys=False)
