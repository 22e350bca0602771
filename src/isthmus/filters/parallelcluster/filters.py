"""Filters of this package for Ansible."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from isthmus.filters.parallelcluster import changes, render, where


def parallelcluster_names(site: Mapping[str, Any]) -> dict[str, list[str]]:
    """Return the subnets, the secrets and the scripts in buckets that a site refers to."""
    kinds = site["kinds"].values()
    subnets = [part["subnet"] for part in (site["head"], site["login"]) if part.get("subnet")]
    subnets += [subnet for kind in kinds for subnet in kind.get("subnets", [])]
    secrets = [part["password_secret"] for part in (site["directory"], site["database"]) if part]
    # The run itself brings what is in the site's own folder.
    own = f"{render.scripts(site)['folder']}/"
    objects = [url for url in _scripts(render.cluster_config(site)) if not url.startswith(own)]
    named = {"subnets": subnets, "secrets": secrets, "objects": objects}
    return {kind: list(dict.fromkeys(names)) for kind, names in named.items()}


def _scripts(config: object) -> Iterator[str]:
    """Yield the URLs of a configuration's scripts that are objects in a bucket."""
    if isinstance(config, Mapping):
        script = config.get("Script")
        if isinstance(script, str) and script.startswith("s3://"):
            yield script
    for part in config.values() if isinstance(config, Mapping) else config if isinstance(config, list) else ():
        yield from _scripts(part)


FILTERS: dict[str, Callable[..., object]] = {
    "parallelcluster_changes": changes.plan,
    "parallelcluster_change_lines": changes.lines,
    "parallelcluster_change_refusal": changes.refusal,
    "parallelcluster_config": render.cluster_config,
    "parallelcluster_image_script": render.image_script,
    "parallelcluster_names": parallelcluster_names,
    "parallelcluster_where": where.where,
}
