"""Locations of keys in the inventory's files, so that a message names file and line.

Ansible passes merged values without their origin; the files are parsed a second time for locations. They are composed,
not loaded, so that unknown tags such as `!vault` do not matter.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import yaml

UNPLACED = "inventory"
_VARIABLE_FOLDERS = ("group_vars", "host_vars")
# Files of group_vars may go without a suffix.
_SUFFIXES = ("", ".yml", ".yaml", ".json")
# A default that is set, or shown in a comment.
_DOCUMENTED = re.compile(r"^(?:# ?)?([a-z][a-z0-9_]*):", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Entry:
    """A key of a mapping: its place, and its value where that is plain text."""

    key: str
    value: str
    tag: str
    place: str


class Sources:
    """The YAML files behind the inventory sources.

    Args:
        paths: inventory sources: files or folders; lists of hosts such as `a,b` have no file.
    """

    def __init__(self, paths: Iterable[str]) -> None:
        self.files = tuple(dict.fromkeys(file for path in paths for file in _files(Path(path))))
        self.entries = tuple(entry for file in self.files for entry in _entries(file))

    def where(self, *keys: str, value: object = None) -> str:
        """Return `file:line` of the first key that is found.

        Of several locations the last is returned: defaults come first, and of two equal entries the second is
        the superfluous one.

        Args:
            keys: keys, the most exact first.
            value: of the first key at that location.
        """
        for key in keys:
            wanted = str(value) if value is not None and key == keys[0] else None
            for entry in reversed(self.entries):
                if entry.key == key and wanted in (None, entry.value):
                    return entry.place
        return UNPLACED

    def reads(self, name: str) -> bool:
        """Return whether a template in these files uses the variable."""
        word = re.compile(rf"\b{re.escape(name)}\b")
        return any("{{" in entry.value and word.search(entry.value) for entry in self.entries)

    def owners(self, folder: str) -> Iterator[tuple[str, str]]:
        """Yield the group or host that each file in group_vars or host_vars is for, and the file."""
        for file in self.files:
            if folder in file.parts[:-1]:
                first = Path(file.parts[file.parts.index(folder) + 1])
                yield first.stem if first.suffix in _SUFFIXES else first.name, _shown(file)

    def documented(self) -> set[str]:
        """Return the variables that inventories/common sets or shows in a comment."""
        texts = (file.read_text() for file in self.files if _is_common(file))
        return {name for text in texts for name in _DOCUMENTED.findall(text)}


def _shown(file: Path) -> str:
    shown = os.path.relpath(file)
    return str(file) if shown.startswith("..") else shown


def _files(source: Path) -> Iterator[Path]:
    if source.is_file():
        yield from filter(_is_yaml, [source])
        for folder in _VARIABLE_FOLDERS:
            yield from _walk(source.parent / folder)
    else:
        yield from _walk(source)


def _walk(folder: Path) -> Iterator[Path]:
    for parent, folders, names in os.walk(folder, followlinks=True):
        folders.sort()
        yield from filter(_is_yaml, (Path(parent, name) for name in sorted(names)))


def _is_yaml(file: Path) -> bool:
    return file.suffix in _SUFFIXES


def _is_common(file: Path) -> bool:
    return "/inventories/common/" in str(file.resolve())


def _entries(file: Path) -> Iterator[Entry]:
    try:
        root = yaml.compose(file.read_text(), Loader=yaml.CSafeLoader)
    except (yaml.YAMLError, UnicodeDecodeError):
        return  # Ansible has parsed it already, or reports it as unparsed
    yield from _walk_node(root, _shown(file))


def _walk_node(node: yaml.Node | None, file: str) -> Iterator[Entry]:
    if isinstance(node, yaml.SequenceNode):
        for position, item in enumerate(node.value):
            if isinstance(item, yaml.ScalarNode):
                yield Entry(str(position), item.value, item.tag, f"{file}:{item.start_mark.line + 1}")
            yield from _walk_node(item, file)
    elif isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            text = value.value if isinstance(value, yaml.ScalarNode) else ""
            yield Entry(str(key.value), text, value.tag, f"{file}:{key.start_mark.line + 1}")
            yield from _walk_node(value, file)
