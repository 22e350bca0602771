"""What the module `host_files` is given, out of shorter lists."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping


def files_written(contents: Mapping[str, str]) -> list[dict[str, str]]:
    """Entries for files with these contents; path -> content."""
    return [{"path": path, "content": content} for path, content in contents.items()]


def files_removed(paths: Iterable[str]) -> list[dict[str, str]]:
    """Entries for what shall not be there."""
    return [{"path": path, "state": "absent"} for path in paths]


FILTERS: dict[str, Callable[..., object]] = {"files_removed": files_removed, "files_written": files_written}
