"""Entries of the module `host_files`, from shorter lists."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path


def files_written(contents: Mapping[str, str]) -> list[dict[str, str]]:
    """Return entries for files with these contents; path -> content."""
    return [{"path": path, "content": content} for path, content in contents.items()]


def files_removed(paths: Iterable[str]) -> list[dict[str, str]]:
    """Return entries for paths that must be absent."""
    return [{"path": path, "state": "absent"} for path in paths]


def files_copied(source: str, path: str, owner: str, mode: str) -> dict[str, str]:
    """Return an entry for a file of the deployer, which may be binary; the group has the owner's name."""
    content = b64encode(Path(source).read_bytes()).decode()
    return {"path": path, "base64": content, "owner": owner, "group": owner, "mode": mode}


def files_same(paths: Iterable[str], mode: str, optional: bool = False) -> list[dict[str, object]]:
    """Return entries for files that are equal to the controller's; `optional` where it may have none."""
    return [{"path": path, "mode": mode, "optional": optional} for path in paths]


def files_block(text: str, mark: str) -> str:
    """Return the text between two marks, "" without marks; `mark` is that of `ansible.builtin.blockinfile`."""
    begin, end = (mark.format(mark=place) for place in ("BEGIN", "END"))
    lines = text.splitlines()
    if begin not in lines or end not in lines:
        return ""
    return "".join(f"{line}\n" for line in lines[lines.index(begin) + 1 : lines.index(end)])


def files_with_block(text: str, mark: str, block: str, after: str = "") -> str:
    """Return a text with a block between two marks: in its old place, after the last line like `after`, or at the end.

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
