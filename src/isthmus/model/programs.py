"""Third-party programs: entries of the table `artifacts.yml`, and the results of obtaining them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

# What a mirror has at its top: a row per program with name, version, arch, file and sha256.
MIRROR_INDEX = "programs.json"
MIRROR_SCHEMA = 1
# In the version of a package that the deployer has built itself; no repository has it.
OWN_PACKAGES = ("+setuid.", "+pmix.")


class Way(StrEnum):
    """How a program may be had; the site orders them."""

    CACHE = "cache"
    MIRROR = "mirror"
    UPSTREAM = "upstream"
    BUILD = "build"


class Arch(StrEnum):
    """Machines that programs are made for, in Go's and Debian's words."""

    AMD64 = "amd64"
    ARM64 = "arm64"


@dataclass(frozen=True, slots=True)
class Upstream:
    """An official release file.

    Attributes:
        url: where it lies; `{program}`, `{version}` and `{arch}` stand for themselves.
        sha256: hex digest per machine, confirmed in public; a machine without one has no upstream way.
        member: path of the program when the file is a tar archive; None where the file is what is wanted.
    """

    url: str
    sha256: Mapping[Arch, str]
    member: str | None = None


@dataclass(frozen=True, slots=True)
class Build:
    """How the program is built from Go modules.

    Attributes:
        module: folder below build/go with go.mod, go.sum and tools.go; it has the release's name.
        package: the main package, as a blank import of tools.go.
        ldflags: flags of the linker besides `-s -w`; `{version}` stands for itself.
        cgo: whether C is part of it; it is then linked statically.
        test: whether the program is the package's test binary.
        file: path of a file of the module `package`, which is taken as it is; empty for a program.
    """

    module: str
    package: str
    ldflags: str = ""
    cgo: bool = False
    test: bool = False
    file: str = ""


@dataclass(frozen=True, slots=True)
class Program:
    """One row of the table.

    Attributes:
        on_request: obtained only when it is named; no layer needs it.
    """

    name: str
    version: str
    licence: str
    source: str
    upstream: Upstream | None
    build: Build | None
    on_request: bool = False

    def __str__(self) -> str:
        """Name and version, as messages show them."""
        return f"{self.name} {self.version}"


@dataclass(frozen=True, slots=True)
class Obtained:
    """A program in the cache.

    Attributes:
        path: the executable; its name is its content's hash.
        sha256: hex digest of the executable.
        way: how it was had this time.
        origin: how the cache came by it.
        took_s: how long it took this time.
    """

    name: str
    version: str
    path: Path
    sha256: str
    way: Way
    origin: Way
    took_s: float
