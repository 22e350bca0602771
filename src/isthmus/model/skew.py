"""Version skew: which versions may run beside one another, and which may follow which.

Sources: https://slurm.schedmd.com/upgrades.html, https://etcd.io/docs/v3.7/upgrades/ and
https://kubernetes.io/releases/version-skew-policy/. A release that a table does not have is not guessed at.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

_DEBIAN = re.compile(r"(?:\d+:)?v?(\d+(?:\.\d+)*)")


class UnknownVersionError(ValueError):
    """A text is no version, or a release is not in its table."""


@dataclass(frozen=True)
class Line:
    """The releases of a program, oldest first, and how far apart two of them may be.

    Attributes:
        name: of the program.
        releases: such as 24.11.
        back: release -> from how many releases back one may come, and clients may be; `usual` for the others.
        usual: the same where `back` has none.
        down: by how many releases one may go back without a backup.
        least: release -> the version of the release before from which alone one may come.
    """

    name: str
    releases: tuple[str, ...]
    usual: int
    back: dict[str, int] = field(default_factory=dict)
    down: int = 0
    least: dict[str, str] = field(default_factory=dict)

    def place(self, version: str) -> int:
        """Return where a version's release is among the others.

        Raises:
            UnknownVersionError: it is not among them.
        """
        numbers(version)
        if (found := release(version)) not in self.releases:
            raise UnknownVersionError(f"{self.name} {version} is none of the releases {', '.join(self.releases)}")
        return self.releases.index(found)

    def reach(self, version: str) -> int:
        """From how many releases back one may come to a version."""
        return self.back.get(self.releases[self.place(version)], self.usual)

    def accepts(self, newer: str, older: str) -> bool:
        """Return whether a version works beside, or with the data of, one that is older or as old."""
        distance = self.place(newer) - self.place(older)
        least = self.least.get(release(newer)) if distance else None
        return 0 <= distance <= self.reach(newer) and (least is None or numbers(older) >= numbers(least))


_SLURM_THREE = ("24.11", "25.05", "25.11", "26.05")
SLURM = Line(
    "Slurm",
    ("20.11", "21.08", "22.05", "23.02", "23.11", "24.05", *_SLURM_THREE),
    usual=2,
    back=dict.fromkeys(_SLURM_THREE, 3),
)
ETCD = Line("etcd", ("3.4", "3.5", "3.6", "3.7"), usual=1, down=1, least={"3.6": "3.5.26"})
KUBERNETES = Line("Kubernetes", tuple(f"1.{minor}" for minor in range(30, 41)), usual=1)

# Debian builds these without the plugin mpi/pmix (its bug 1149781).
SLURM_WITHOUT_PMIX = frozenset({"25.11", "26.05"})
# For this one of them build/slurm has a recipe of the plugin.
SLURM_PMIX = "26.05.5-1"


def numbers(version: str) -> tuple[int, ...]:
    """Return the numbers of an upstream version, or of a Debian version without its revision.

    Raises:
        UnknownVersionError: there are none.
    """
    found = _DEBIAN.match(version)
    if not found:
        raise UnknownVersionError(f"{version!r} is no version")
    return tuple(int(number) for number in found[1].split("."))


def upstream(version: str) -> str:
    """Return a Debian version without epoch and revision: 24.11.5 of 24.11.5-4+deb13u1."""
    found = _DEBIAN.match(version)
    return found[1] if found else ""


def release(version: str) -> str:
    """Return what a program's makers call the release: 24.11 of 24.11.5-4."""
    return ".".join(upstream(version).split(".")[:2])


def fits(version: str, wanted: str) -> bool:
    """Return whether a version is the wanted one, which may be cut off at a dot or before the Debian revision."""
    return version == wanted or (version.startswith(wanted) and version[len(wanted)] in ".-+~")


def lacks_pmix(version: str) -> bool:
    """Return whether Debian's packages of a Slurm version lack the plugin mpi/pmix."""
    return release(version) in SLURM_WITHOUT_PMIX


def oldest(versions: Sequence[str]) -> str:
    """Return the oldest of versions, "" of none."""
    return min(versions, key=numbers, default="")
