"""The site's workloads, from /etc/isthmus/workloads.json, which role `workloads` writes."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import yaml

FILE = Path("/etc/isthmus/workloads.json")
SCHEMA = 1
_REMEDY = "an admin writes it again with playbooks/workloads.yml"


class WorkloadError(Exception):
    """What was asked for cannot be; the message has the remedy."""


@dataclass(frozen=True, slots=True)
class Workload:
    """One that users may add.

    Attributes:
        name: what users type.
        title: what it is, for people.
        version: of the operator.
        licence: SPDX.
        folder: holds manifest.yaml, chart/ and examples/.
        namespace: of the operator.
        deployment: of the operator, in that namespace.
        kind: of the objects that users make.
        resources: the API's path of these, in all namespaces.
        images: name -> reference, for users' own objects.
    """

    name: str
    title: str
    version: str
    licence: str
    folder: Path
    namespace: str
    deployment: str
    kind: str
    resources: str
    images: Mapping[str, str]

    @property
    def manifest(self) -> Path:
        """What `kubectl apply --filename` takes as well."""
        return self.folder / "manifest.yaml"

    @property
    def chart(self) -> Path:
        """What `helm install` takes."""
        return self.folder / "chart"

    @property
    def examples(self) -> list[Path]:
        """Objects to begin with."""
        return sorted((self.folder / "examples").glob("*.yaml"))

    def objects(self) -> list[dict[str, Any]]:
        """Return the manifest's objects, in the order in which they can be made.

        Raises:
            WorkloadError: it cannot be read.
        """
        return _objects(self.manifest)

    def example(self) -> dict[str, Any] | None:
        """Return an object as users make it.

        Raises:
            WorkloadError: it cannot be read.
        """
        return next((each for path in self.examples for each in _objects(path) if each["kind"] == self.kind), None)


def read(path: Path = FILE) -> dict[str, Workload]:
    """Return what the site offers, by name, in its order.

    Raises:
        WorkloadError: this host has no such file, or it cannot be read.
    """
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        if document["schema"] != SCHEMA:
            raise ValueError(f"schema {document['schema']!r} is not {SCHEMA}")
        return {name: _workload(name, row) for name, row in document["workloads"].items()}
    except FileNotFoundError as error:
        raise WorkloadError(f"{path} is missing: the site offers no workloads here; {_REMEDY}") from error
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise WorkloadError(f"{path}: {error!r}; {_REMEDY}") from error


def pick(offered: Mapping[str, Workload], name: str) -> Workload:
    """Return a workload by its name.

    Raises:
        WorkloadError: the site does not offer it.
    """
    if name in offered:
        return offered[name]
    meant = "".join(f"; did you mean {near}?" for near in get_close_matches(name, offered, n=1))
    raise WorkloadError(f"the site offers no workload {name!r}{meant or _known(offered)}")


def _objects(path: Path) -> list[dict[str, Any]]:
    try:
        return list(yaml.load_all(path.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader))
    except (OSError, yaml.YAMLError) as error:
        raise WorkloadError(f"{path}: {error}; {_REMEDY}") from error


def _known(offered: Iterable[str]) -> str:
    return f"; it offers: {', '.join(offered) or 'none'}"


def _workload(name: str, row: Mapping[str, Any]) -> Workload:
    words = ("title", "version", "licence", "namespace", "deployment", "kind", "resources")
    images = {str(key): str(value) for key, value in row["images"].items()}
    return Workload(name=name, folder=Path(row["folder"]), images=images, **{word: str(row[word]) for word in words})
