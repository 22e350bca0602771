"""What the module `host_files` is given, out of shorter lists."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path


def files_written(contents: Mapping[str, str]) -> list[dict[str, str]]:
    """Entries for files with these contents; path -> content."""
    return [{"path": path, "content": content} for path, content in contents.items()]


def files_removed(paths: Iterable[str]) -> list[dict[str, str]]:
    """Entries for what shall not be there."""
    return [{"path": path, "state": "absent"} for path in paths]


def files_copied(source: str, path: str, owner: str, mode: str) -> dict[str, str]:
    """An entry for a file of the deployer's, whose bytes may be no text; the group has the owner's name."""
    content = b64encode(Path(source).read_bytes()).decode()
    return {"path": path, "base64": content, "owner": owner, "group": owner, "mode": mode}


def files_same(paths: Iterable[str], mode: str, optional: bool = False) -> list[dict[str, object]]:
    """Entries for files that each host has as the controller has them; `optional` where it may have none."""
    return [{"path": path, "mode": mode, "optional": optional} for path in paths]


def files_block(text: str, mark: str) -> str:
    """What a text has between two marks, "" for neither; `mark` is that of `ansible.builtin.blockinfile`."""
    begin, end = (mark.format(mark=place) for place in ("BEGIN", "END"))
    lines = text.splitlines()
    if begin not in lines or end not in lines:
        return ""
    return "".join(f"{line}\n" for line in lines[lines.index(begin) + 1 : lines.index(end)])


def files_with_block(text: str, mark: str, block: str, after: str = "") -> str:
    """A text with lines between two marks: in their old place, behind the last line like `after`, or at the end.

    The rest stays; `after` is a regular expression, as `insertafter` of `ansible.builtin.blockinfile`.
    """
    begin, end = (mark.format(mark=place) for place in ("BEGIN", "END"))
    lines, added = text.splitlines(), [begin, *block.splitlines(), end] if block else []
    if begin in lines and end in lines:
        lines[lines.index(begin) : lines.index(end) + 1] = added
    else:
        places = [number for number, line in enumerate(lines, 1) if after and re.search(after, line)]
        place = places[-1] if places else len(lines)
        lines[place:place] = added
    return "".join(f"{line}\n" for line in lines)


FILTERS: dict[str, Callable[..., object]] = {
    "files_block": files_block,
    "files_copied": files_copied,
    "files_removed": files_removed,
    "files_same": files_same,
    "files_with_block": files_with_block,
    "files_written": files_written,
}
