"""Kubeconfigs: of the programs, which name files so that a renewed certificate is seen at once, and of the user.

The user's holds its key and certificate: it may be copied to another machine, and is no secret less for that.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from isthmus.controlplane.errors import ControlPlaneError
from isthmus.controlplane.layout import Layout
from isthmus.support import durable

NAME = "isthmus"


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


def _merged(theirs: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    lists = {
        kind: [each for each in theirs.get(kind) or [] if each["name"] != NAME] + own[kind]
        for kind in ("clusters", "users", "contexts")
    }
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
