"""Filters of this package for Ansible."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from isthmus.filters.parallelcluster import changes, render, where


def parallelcluster_names(site: Mapping[str, Any]) -> dict[str, list[str]]:
    """Return the subnets and secrets that a site refers to."""
    kinds = site["kinds"].values()
    subnets = [part["subnet"] for part in (site["head"], site["login"]) if part.get("subnet")]
    subnets += [subnet for kind in kinds for subnet in kind.get("subnets", [])]
    secrets = [part["password_secret"] for part in (site["directory"], site["database"]) if part]
    return {"subnets": list(dict.fromkeys(subnets)), "secrets": list(dict.fromkeys(secrets))}


FILTERS: dict[str, Callable[..., object]] = {
    "parallelcluster_changes": changes.plan,
    "parallelcluster_change_lines": changes.lines,
    "parallelcluster_change_refusal": changes.refusal,
    "parallelcluster_config": render.cluster_config,
    "parallelcluster_image_script": render.image_script,
    "parallelcluster_names": parallelcluster_names,
    "parallelcluster_where": where.where,
}
