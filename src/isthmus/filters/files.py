"""What the module `host_files` is given, out of shorter lists."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping


def files_written(contents: Mapping[str, str]) -> list[dict[str, str]]:
    """Entries for files with these contents; path -> content."""
    return [{"path": path, "content": content} for path, content in contents.items()]


def files_removed(paths: Iterable[str]) -> list[dict[str, str]]:
    """Entries for what shall not be there."""
    return [{"path": path, "state": "absent"} for path in paths]


def files_block(text: str, mark: str) -> str:
    """What a text has between two marks, "" for neither; `mark` is that of `ansible.builtin.blockinfile`."""
    begin, end = (mark.format(mark=place) for place in ("BEGIN", "END"))
    lines = text.splitlines()
    if begin not in lines or end not in lines:
        return ""
    return "".join(f"{line}\n" for line in lines[lines.index(begin) + 1 : lines.index(end)])


def files_with_block(text: str, mark: str, block: str) -> str:
    """A text with lines between two marks, in their old place or at the end; the rest stays."""
    begin, end = (mark.format(mark=place) for place in ("BEGIN", "END"))
    lines, added = text.splitlines(), [begin, *block.splitlines(), end] if block else []
    if begin in lines and end in lines:
        lines[lines.index(begin) : lines.index(end) + 1] = added
    else:
        lines += added
    return "".join(f"{line}\n" for line in lines)


FILTERS: dict[str, Callable[..., object]] = {
    "files_block": files_block,
    "files_removed": files_removed,
    "files_with_block": files_with_block,
    "files_written": files_written,
}
