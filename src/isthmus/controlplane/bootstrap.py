"""The objects of every cluster: admission policies in place of a scheduler, RBAC, storage classes; applied at starts.

They are YAML files in `objects`, applied by server-side apply; a user's change of a field that they own is
reverted. `$node` stands for the name of the node.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import resources
from string import Template
from typing import Any

import yaml

from isthmus.clients.kube.apiserver import ApiServer

OBJECTS = resources.files("isthmus.controlplane") / "objects"
# Only where Services have no addresses of their own.
HEADLESS = "headless.yaml"


def objects(name: str, node: str) -> Iterator[Mapping[str, Any]]:
    """Yield the objects of one file."""
    text = (OBJECTS / name).read_text(encoding="utf-8")
    yield from yaml.safe_load_all(Template(text).substitute(node=node))


def apply(api: ApiServer, node: str, *, headless: bool) -> int:
    """Apply the objects; return how many.

    Raises:
        KubeError: the API server refuses one or does not answer; applying again is harmless.
    """
    count = 0
    for file in sorted(each.name for each in OBJECTS.iterdir() if each.name.endswith(".yaml")):
        wanted = headless or file != HEADLESS
        for item in objects(file, node):
            (api.apply if wanted else api.delete)(item)
            count += wanted
    return count
