"""Copies of the deployer's files to a host: all of a role are compared in one round trip, by their hashes.

`ansible.builtin.copy` needs one or two round trips for each file, also where nothing changes. Here the missing files
are transferred as one archive, and each is written atomically.
"""

from __future__ import annotations

import shlex
import tarfile
from collections.abc import Mapping, Sequence
from hashlib import file_digest
from pathlib import Path
from typing import IO

Copy = Mapping[str, str]


def question(copies: Sequence[Copy]) -> str:
    """Return the shell command that prints content hash, owner, group and mode of these paths on a host."""
    places = shlex.join(copy["dest"] for copy in copies)
    return f"sha256sum -- {places} 2>/dev/null; stat --format='%U:%G:%a  %n' -- {places} 2>/dev/null; true"


def outdated(copies: Sequence[Copy], output: str) -> list[Copy]:
    """Return the copies whose content, owner, group or mode on the host is not as desired.

    Args:
        copies: src on the deployer, dest on the host, owner, group, mode.
        output: what the command of `question` printed.
    """
    lines = {line.strip() for line in output.splitlines()}
    # Owner and mode first: a missing file needs no hash.
    return [copy for copy in copies if _rights(copy) not in lines or _content(copy) not in lines]


def pack(copies: Sequence[Copy], archive: IO[bytes]) -> None:
    """Write the sources of several copies into an archive, named by number; a single source is transferred as it is.

    Raises:
        OSError: a source cannot be read.
    """
    with tarfile.open(fileobj=archive, mode="w") as packed:
        for number, copy in enumerate(copies):
            with Path(copy["src"]).open("rb") as source:
                packed.addfile(packed.gettarinfo(arcname=str(number), fileobj=source), source)


def placing(copies: Sequence[Copy], brought: str) -> str:
    """Return the shell command that installs what was transferred, such an archive or a single source.

    Each file is written atomically; if a crash of the host loses it, the next run notices by its hash.

    Missing folders are created with mode 0755. Only root can read a file before it has its owner and mode.
    """
    places = sorted({str(Path(copy["dest"]).parent) for copy in copies})
    steps = [f"umask 022; mkdir -p -- {shlex.join(places)}", "umask 077"]
    for number, copy in enumerate(copies):
        place = Path(copy["dest"])
        new, dest = (shlex.quote(str(path)) for path in (place.with_name(f".{place.name}.new"), place))
        steps += [
            f"rm -f -- {new}",
            f"{shlex.join(_reading(brought, number if len(copies) > 1 else None))} > {new}",
            f"chown -- {shlex.join([copy['owner'] + ':' + copy['group']])} {new}",
            f"chmod -- {shlex.join([copy['mode']])} {new}",
            f"mv --force --no-target-directory -- {new} {dest}",
        ]
    return "\n".join(["set -e", *steps])


def _reading(brought: str, number: int | None) -> list[str]:
    if number is None:
        return ["cat", "--", brought]
    return ["tar", "--extract", "--to-stdout", "--file", brought, str(number)]


def _content(copy: Copy) -> str:
    source = Path(copy["src"])
    if not source.is_file():
        return "nothing to compare with"
    with source.open("rb") as file:
        return f"{file_digest(file, 'sha256').hexdigest()}  {copy['dest']}"


def _rights(copy: Copy) -> str:
    return f"{copy['owner']}:{copy['group']}:{copy['mode'].lstrip('0')}  {copy['dest']}"
