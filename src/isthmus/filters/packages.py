"""Debian packages that a host lacks, as the files of dpkg and apt tell.

apt itself, apt-mark too, reads all lists of packages before it says that nothing is to be done.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence

_MARKS = "/var/lib/apt/extended_states"
_MARKED = re.compile(r"^Package: (\S+)\s+Architecture: \S+\s+Auto-Installed: 1", re.MULTILINE)
_FORMAT = "--showformat=${db:Status-Status} ${Package}\\n"


def question(names: Sequence[str]) -> str:
    """Return the shell command whose output tells which of the packages are installed, and on whose wish."""
    installed = shlex.join(["dpkg-query", "--show", _FORMAT, *names])
    return f"{installed} 2>/dev/null; cat {_MARKS} 2>/dev/null"


def lacking(names: Sequence[str], output: str) -> list[str]:
    """Packages that are not installed, or only because another needs them: apt might take those away again.

    Args:
        names: names of packages, without versions.
        output: what the command of `question` printed.
    """
    lines, marked = {line.strip() for line in output.splitlines()}, set(_MARKED.findall(output))
    return [name for name in names if f"installed {name}" not in lines or name in marked]
