"""Files of the deployer that a host lacks or has otherwise: all of a role are compared in one go, by their hashes.

`ansible.builtin.copy` goes to the host once or twice for each of them, also where nothing is to be brought.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from hashlib import file_digest
from pathlib import Path

Copy = Mapping[str, str]


def question(copies: Sequence[Copy]) -> str:
    """Return the shell command whose output tells what a host has in these places."""
    places = shlex.join(copy["dest"] for copy in copies)
    return f"sha256sum -- {places} 2>/dev/null; stat --format='%U:%G:%a  %n' -- {places} 2>/dev/null; true"


def outdated(copies: Sequence[Copy], told: str) -> list[Copy]:
    """Those that are not there as they shall be: content, owner, group and mode.

    Args:
        copies: src on the deployer, dest on the host, owner, group, mode.
        told: what the command of `question` printed.
    """
    lines = {line.strip() for line in told.splitlines()}
    return [copy for copy in copies if not {_content(copy), _rights(copy)} <= lines]


def folders(copies: Sequence[Copy]) -> str:
    """Return the shell command that makes the folders of these places where there are none."""
    places = {str(Path(copy["dest"]).parent) for copy in copies}
    return f"umask 022; mkdir -p -- {shlex.join(sorted(places))}"


def _content(copy: Copy) -> str:
    source = Path(copy["src"])
    if not source.is_file():
        return "nothing to compare with"
    with source.open("rb") as file:
        return f"{file_digest(file, 'sha256').hexdigest()}  {copy['dest']}"


def _rights(copy: Copy) -> str:
    return f"{copy['owner']}:{copy['group']}:{copy['mode'].lstrip('0')}  {copy['dest']}"
