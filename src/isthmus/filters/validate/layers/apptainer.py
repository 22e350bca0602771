"""Apptainer: the source of its package, and ranges of subordinate ids that do not overlap."""

from __future__ import annotations

import re
from collections.abc import Iterator

from isthmus.filters.validate.site import Site
from isthmus.model.images import REGISTRY
from isthmus.model.subids import END_ID, Range, overlaps

# Ids below belong to ordinary users.
FIRST_ID = 65_536
_SHA256 = re.compile(r"[0-9a-f]{64}")
_MIRRORS = "apptainer_registry_mirrors"
_COUNT = "apptainer_subid_count"
_DEFAULT_COUNT = 65_536


def apptainer_problems(site: Site) -> Iterator[str]:
    """Yield what is wrong with the package, with mirrors of registries and with apptainer_subids."""
    yield from _package(site)
    yield from _mirrors(site)
    yield from _ranges(site)


def _package(site: Site) -> Iterator[str]:
    if site.shared("apptainer_package_source") != "url":
        return
    if not site.shared("apptainer_package_url"):
        yield site.problem(
            "apptainer_package_source is url, and apptainer_package_url is empty",
            "name the .deb of an official release",
            "apptainer_package_url",
            "apptainer_package_source",
        )
    digest = str(site.shared("apptainer_package_sha256") or "")
    if not _SHA256.fullmatch(digest):
        yield site.problem(
            f"apptainer_package_sha256 has {len(digest)} characters and is no SHA-256",
            "give the 64 hex digits that the release names",
            "apptainer_package_sha256",
            "apptainer_package_source",
        )


def _mirrors(site: Site) -> Iterator[str]:
    for registry, mirrors in (site.shared(_MIRRORS) or {}).items():
        if not isinstance(mirrors, list):
            yield site.problem(f"{_MIRRORS} of {registry} is no list", "write [mirror.example.org/hub]", _MIRRORS)
            continue
        for name in (str(each) for each in (registry, *mirrors)):
            if not REGISTRY.fullmatch(name):
                yield site.problem(
                    f"{_MIRRORS} has {name!r}, which is no registry",
                    "write host, host:port or host/path, without a scheme or a tag",
                    _MIRRORS,
                )


def _ranges(site: Site) -> Iterator[str]:
    count = site.shared(_COUNT) or _DEFAULT_COUNT
    given = site.shared_list("apptainer_subids")
    ranges = [Range(str(each["name"]), each.get("start", 0), each.get("count", count)) for each in given]
    for each in ranges:
        if each.count < 1 or each.start < FIRST_ID or each.end > END_ID:
            yield site.problem(
                f"{each.text} is not within {FIRST_ID} and {END_ID - 1}",
                "choose start and count between them; lower ids belong to users",
                "start",
                "apptainer_subids",
                value=each.start,
            )
    for one, other in overlaps(ranges):
        yield site.problem(
            f"{one.text} and {other.text} overlap",
            "give each user ids of their own",
            "start",
            "apptainer_subids",
            value=other.start,
        )
