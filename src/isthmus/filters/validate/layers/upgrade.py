"""Desired versions, and the site's own hooks of an upgrade, as far as the inventory alone shows."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from isthmus.filters.validate.site import Site
from isthmus.model import skew

RELEASE = "release"
# Each with before_ and after_.
_PARTS = ("etcd", "controller", "batch", "login")
MOMENTS = tuple(f"{when}_{part}" for part in _PARTS for when in ("before", "after"))
_SUITE = re.compile(r"[a-z][a-z0-9-]*")


def upgrade_problems(site: Site) -> Iterator[str]:
    """Yield what is wrong with the wanted versions and the programs of an upgrade."""
    yield from _version(site)
    yield from _source(site)
    yield from _hooks(site)


def _version(site: Site) -> Iterator[str]:
    version = site.shared("slurm_version") or ""
    if not isinstance(version, str):
        yield site.problem(f"slurm_version is {version}, a number", f"write it as text: '{version}'", "slurm_version")
        return
    if not version:
        return
    try:
        skew.SLURM.place(version)
    except skew.UnknownVersionError as error:
        yield site.problem(str(error), "correct slurm_version, or use a newer Isthmus", "slurm_version")
        return
    pmix = site.shared("slurm_mpi_default") in (None, "pmix")
    if pmix and skew.lacks_pmix(version) and not skew.fits(skew.SLURM_PMIX, version):
        what = f"Debian's Slurm {version} has no plugin mpi/pmix, and slurm_mpi_default is pmix"
        remedy = f"take {skew.SLURM_PMIX}, for which this Isthmus builds one, or set slurm_mpi_default: pmi2, or stay"
        yield site.problem(what, remedy, "slurm_version")


def _source(site: Site) -> Iterator[str]:
    source = site.shared("slurm_package_source")
    if source in (None, RELEASE):
        return
    if not isinstance(source, str) or not _SUITE.fullmatch(source):
        what = f"slurm_package_source is {source!r}, no name of a suite"
        yield site.problem(what, f"write {RELEASE}, or e.g. forky", "slurm_package_source")
    elif not site.shared("slurm_version"):
        what = f"slurm_package_source is {source}, whose Slurm changes, and slurm_version names none"
        yield site.problem(what, "set slurm_version too, e.g. '26.05'", "slurm_package_source")
    elif site.shared("cluster_bundle"):
        what = f"slurm_package_source is {source}, and a bundle has the packages of its own site"
        yield site.problem(what, f"set it to {RELEASE}", "slurm_package_source")


def _hooks(site: Site) -> Iterator[str]:
    hooks = site.shared("upgrade_hooks")
    for moment, commands in (hooks if isinstance(hooks, Mapping) else {}).items():
        if moment not in MOMENTS:
            remedy = f"name one of {', '.join(MOMENTS)}"
            yield site.problem(f"upgrade_hooks has {moment!r}, no moment of an upgrade", remedy, "upgrade_hooks")
        elif not isinstance(commands, list) or not all(_is_command(command) for command in commands):
            remedy = "write each as a list of words: [[./notify.sh, soon]]"
            yield site.problem(f"upgrade_hooks, {moment}: not all are commands", remedy, "upgrade_hooks")


def _is_command(command: object) -> bool:
    return isinstance(command, list) and bool(command) and all(isinstance(word, str) and word for word in command)
