"""Missing Debian packages of a host, by the files of dpkg and apt.

apt and apt-mark parse all package lists before they report that nothing is to be done.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence

from isthmus.support.modules import dpkg

_MARKS = "/var/lib/apt/extended_states"
_MARKED = re.compile(r"^Package: (\S+)\s+Architecture: \S+\s+Auto-Installed: 1", re.MULTILINE)


def question(names: Sequence[str]) -> str:
    """Return the shell command that prints which packages are installed, and whether manually."""
    installed = shlex.join(dpkg.question(names))
    return f"{installed} 2>/dev/null; cat {_MARKS} 2>/dev/null"


def lacking(names: Sequence[str], output: str) -> list[str]:
    """Return the packages that are not installed, or only as dependencies: apt may remove those again.

    Args:
        names: names of packages, without versions.
        output: what the command of `question` printed.
    """
    there, marked = dpkg.installed(output), set(_MARKED.findall(output))
    return [name for name in names if name not in there or name in marked]
