"""Debian packages: what dpkg has and what apt's lists offer, each asked and read in one way.

dpkg lists more than what is installed: a package that was removed leaves its files of configuration, one whose
installation broke off is half there, and one of several architectures has a row for each.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

SLURM = "slurm-wlm"
# The deployer's own package, of build/slurm, with what Debian's of that Slurm lack.
SLURM_PMIX = "isthmus-slurm-pmix"
_FIELDS = (
    "${Package}",
    "${Architecture}",
    "${Version}",
    "${source:Package}",
    "${db:Status-Want}",
    "${db:Status-Status}",
)
# In no name and no version (deb-version(7)), and a field may be empty.
_BETWEEN = "|"
# Libraries of an older Slurm stay beside the newer one's: each has its number in its name.
_LIBRARY = re.compile(r"lib\S*[0-9](t64)?")


@dataclass(frozen=True)
class Package:
    """A row of dpkg's.

    Attributes:
        name: without an architecture.
        architecture: amd64, all ...
        version: with epoch and revision; "" for one that was never installed.
        source: name of the source package.
        want: what an admin wants of it: install, hold, deinstall ...
        status: installed, config-files, half-installed ...
    """

    name: str
    architecture: str
    version: str
    source: str
    want: str
    status: str

    @property
    def held(self) -> bool:
        """Whether apt may not move it."""
        return self.want == "hold"


def question(names: Iterable[str] = ()) -> list[str]:
    """Return the command that lists packages, or all; it fails for a missing one, and still lists the others."""
    return ["dpkg-query", "--show", f"--showformat={_BETWEEN.join(_FIELDS)}\\n", *names]


def rows(output: str) -> list[Package]:
    """Parse its output; lines of another form are skipped."""
    split = (line.strip().split(_BETWEEN) for line in output.splitlines())
    return [Package(*fields) for fields in split if len(fields) == len(_FIELDS)]


def installed(output: str) -> dict[str, Package]:
    """Name -> package of those that are installed and configured; of several architectures the first one's."""
    found: dict[str, Package] = {}
    for row in rows(output):
        if row.status == "installed":
            found.setdefault(row.name, row)
    return found


def of_slurm(output: str) -> dict[str, Package]:
    """Name -> package of Slurm's that are installed."""
    return {name: package for name, package in installed(output).items() if package.source == SLURM}


def slurm_programs(output: str) -> dict[str, Package]:
    """The same without the libraries, which may be an older Slurm's."""
    return {name: package for name, package in of_slurm(output).items() if not _LIBRARY.fullmatch(name)}


def offered(output: str) -> list[tuple[str, str]]:
    """Name and version of each line of `apt-cache madison`, the newest first."""
    fields = ([field.strip() for field in line.split("|")] for line in output.splitlines())
    return [(each[0], each[1]) for each in fields if len(each) > 2]
