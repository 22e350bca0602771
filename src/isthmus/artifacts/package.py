"""Builds a Debian package that no release has from source on the deployer, once.

Apptainer with its setuid starter, and Slurm's plugin mpi/pmix.

It uses the programs' cache: content-addressed, with a key over the recipe and a lock per key; files get their names
when they are complete.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from filelock import FileLock

from isthmus.artifacts.errors import ChecksumError
from isthmus.artifacts.recipe import FILE, SCRIPT, Recipe, load
from isthmus.artifacts.store import Entry, Store, check
from isthmus.artifacts.ways import Progress
from isthmus.clients.build import debian, golang
from isthmus.clients.process import ProcessError
from isthmus.filters.errors import InputError
from isthmus.filters.images.image import local_apt_options, local_apt_sources
from isthmus.filters.suggest import check_keys
from isthmus.model.programs import Way
from isthmus.support.ticking import ticking

ARGUMENTS = ("recipe", "cache", "targets", "apt", "jobs", "memory_mib")
# Paths in the build root, which package.sh uses too.
SOURCE, RECIPE, GO, PACKAGE = "/srv/source", "/srv/recipe", "/usr/local/go", "/srv/package.deb"
# In the cache.
GIVEN = "sources"


@dataclass(frozen=True, slots=True)
class Workshop:
    """The tools and sources of a build.

    Attributes:
        go: the pinned one, for a recipe that is built with it.
        sources: lines of sources.list for the recipe's suite, the release itself first.
        options: lines of apt.conf.
        limits: of the compilers.
    """

    go: golang.Go | None
    sources: list[str]
    options: list[str]
    limits: golang.Limits


def run(arguments: Mapping[str, Any], progress: Progress, *, dry: bool = False) -> dict[str, Any]:
    """Build a recipe's package unless the cache has it; return Ansible's result.

    Args:
        arguments: all of ARGUMENTS; `targets` and `apt` are the output of this machine's apt, as `local_apt_sources`
            and `local_apt_options` parse it.
        progress: called with a line of progress.
        dry: change nothing, return whether something would change; whether the source can be had is asked.

    Returns:
        path, sha256 and version of the package, source_version as the recipe has it, took_s.
    """
    started = time.monotonic()
    try:
        check_keys("artifacts_package", arguments, ARGUMENTS)
        recipe = load(Path(arguments["recipe"]))
        store = Store(Path(arguments["cache"]) / "programs")
        with store.lock(recipe.key):
            found = store.find(recipe.key)
            if dry and not found:
                _ask(recipe, store, arguments, progress)
                return {"changed": True}
            entry = found or _make(recipe, store, arguments, progress)
    except (InputError, ChecksumError, OSError, ProcessError) as error:
        return {"failed": True, "msg": str(error)}
    document = {
        "path": str(store.blob(entry)),
        "sha256": entry.sha256,
        "version": recipe.package_version,
        "source_version": recipe.version,
    }
    return {"changed": not found, **document, "took_s": round(time.monotonic() - started, 2)}


def build(recipe: Recipe, workshop: Workshop, archive: Path, progress: Progress) -> Path:
    """Build the package of a source in the archive's folder, which must be empty else; return its path.

    Raises:
        isthmus.clients.process.ProcessError: a step failed.
    """
    source, package = archive.with_name("source"), archive.with_name("package.deb")
    debian.unpack(archive, source)
    inside = {SOURCE: source, RECIPE: recipe.folder}
    if workshop.go:
        progress(f"{recipe}: collecting its Go modules")
        workshop.go.vendor(source)
        inside[GO] = workshop.go.root
    limits = workshop.limits
    environment = {"SOURCE_DATE_EPOCH": str(recipe.epoch), "GOMEMLIMIT": f"{limits.memory_mib // limits.jobs}MiB"}
    command = ["sh", f"{RECIPE}/{SCRIPT}", recipe.version, recipe.package_version, str(limits.jobs)]
    with ticking(lambda so_far_s: progress(f"{recipe}: building, {so_far_s:.0f} s")):
        debian.Debian(recipe.suite, recipe.packages, workshop.sources, workshop.options).run(
            command,
            environment,
            inside=inside,
            result=(PACKAGE, package),
        )
    return package


def _make(recipe: Recipe, store: Store, arguments: Mapping[str, Any], progress: Progress) -> Entry:
    cache = Path(arguments["cache"])
    limits = golang.Limits(int(arguments["jobs"]) or os.cpu_count() or 1, int(arguments["memory_mib"]))
    go = golang.Go(golang.find(recipe.lock, cache / "go"), cache / "go", limits) if recipe.go else None
    sources = local_apt_sources(arguments["targets"], recipe.suite)
    workshop = Workshop(go, sources, local_apt_options(arguments["apt"]), limits)
    with FileLock(store.root / "locks" / "go"), store.workspace(recipe.folder.name) as folder:
        fetch(recipe, arguments, folder / "archive", progress)
        package = build(recipe, workshop, folder / "archive", progress)
        return store.keep(recipe.key, recipe.folder.name, Way.BUILD, package)


def _ask(recipe: Recipe, store: Store, arguments: Mapping[str, Any], progress: Progress) -> None:
    with store.workspace(recipe.folder.name) as folder:
        fetch(recipe, arguments, folder / "archive", progress)


def fetch(recipe: Recipe, arguments: Mapping[str, Any], path: Path, progress: Progress) -> None:
    """Bring the archive of a recipe's source: what an administrator put into the cache, else of the first address.

    Args:
        recipe: what is built.
        arguments: as those of `run`.
        path: of the archive.
        progress: called with a line of progress.

    Raises:
        InputError: no address has it.
        ChecksumError: it is another.
    """
    # An administrator may have put it there by hand.
    given = Path(arguments["cache"], GIVEN, recipe.urls[0].rpartition("/")[2])
    if given.is_file():
        check(given, recipe.sha256, "remove it, or put the file there that has this checksum")
        shutil.copyfile(given, path)
        progress(f"{recipe}: source from {given}")
        return
    said = []
    mirror = local_apt_sources(arguments["targets"], recipe.suite)[0].split()[1].rstrip("/")
    for url in (each.format(mirror=mirror) for each in recipe.urls):
        try:
            debian.download(url, path)
        except ProcessError as error:
            said.append(f"  {_reason(error)}")
            continue
        check(path, recipe.sha256, "do not use it; compare the checksum with Debian's .dsc of this version", url)
        progress(f"{recipe}: source from {url}")
        return
    raise InputError(
        "no address gives the source of {}:\n{}\n".format(recipe, "\n".join(said)),
        f"put the file with sha256 {recipe.sha256} at {given}, or add an address that has it to {recipe.folder / FILE}",
    )


def _reason(error: ProcessError) -> str:
    """The line by which apt says why; it has the address."""
    lines = str(error).splitlines()
    return next((line.removeprefix("E: ") for line in lines if line.startswith("E: ")), lines[-1])
