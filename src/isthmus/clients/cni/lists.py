"""Reads an administrator's list of CNI plugins, of which root alone may be the author.

Each folder on the way is opened in the one before and looked at, and no link is followed, so nobody can exchange what
was looked at. A program is started by its path later; but in folders that root alone can write to nothing is exchanged
behind root's back.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from isthmus.clients.cni.plugins import ListError, NetworkList, parse_list
from isthmus.model.networks import cni
from isthmus.model.networks.cni import Rights

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# A named pipe must not hold the daemon up.
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class AdminList:
    """A list that an administrator wrote.

    Attributes:
        folder: where it is.
        name: its file's.
        plugins: folder of the programs.
    """

    folder: Path
    name: str
    plugins: Path

    def read(self) -> NetworkList:
        """Return it, checked with all that it names.

        Raises:
            ListError: it cannot be used; the message has the remedy.
        """
        where = self.folder / self.name
        if not cni.is_file_name(self.name):
            raise ListError(f"{self.name!r} is no name of a list; use one such as 10-pods.conflist")
        text = _text(self.folder, self.name)
        if problems := list(cni.list_problems(text)):
            raise ListError(f"{where}: {'; '.join(problems)}")
        network = parse_list(text, str(where))
        programs = cni.programs(json.loads(text))
        with _opened(self.plugins) as folder:
            for program in programs:
                _look_at_program(self.plugins, folder, program)
        return network


def _text(folder: Path, name: str) -> str:
    where = folder / name
    with _opened(folder) as parent:
        try:
            file = os.open(name, _FILE, dir_fd=parent)
        except OSError as error:
            raise ListError(f"{where}: {error.strerror}; write the list there, as a file of root's") from error
        try:
            found = os.fstat(file)
            _refuse(str(where), found)
            if not stat.S_ISREG(found.st_mode):
                raise ListError(f"{where} is no file; write the list there")
            content = _content(file)
        finally:
            os.close(file)
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise ListError(f"{where}: {error}; write it in UTF-8") from error


def _content(file: int) -> bytes:
    content = b""
    while len(content) <= cni.LIST_MAX_BYTES and (more := os.read(file, cni.LIST_MAX_BYTES + 1 - len(content))):
        content += more
    return content


def _look_at_program(folder: Path, parent: int, name: str) -> None:
    where = folder / name
    try:
        found = os.stat(name, dir_fd=parent, follow_symlinks=False)
    except OSError as error:
        raise ListError(f"{where}: {error.strerror}; install the plugin, or take it out of the list") from error
    _refuse(str(where), found)
    if not stat.S_ISREG(found.st_mode) or not found.st_mode & stat.S_IXUSR:
        raise ListError(f"{where} is no program; install the plugin")


@contextmanager
def _opened(folder: Path) -> Iterator[int]:
    """Give a folder that root alone can change or replace.

    Raises:
        ListError: it is not there, or others can.
    """
    if not folder.is_absolute() or ".." in folder.parts:
        raise ListError(f"{folder} is no absolute path; write it as /etc/cni/net.d")
    opened = os.open("/", _FOLDER)
    try:
        _refuse("/", os.fstat(opened))
        for way in [*reversed(folder.parents), folder][1:]:
            before, opened = opened, _entered(opened, way, is_last=way == folder)
            os.close(before)
        yield opened
    finally:
        os.close(opened)


def _entered(parent: int, way: Path, *, is_last: bool) -> int:
    """Return a folder, looked at before it is opened, where a link is known, and after, when nothing replaces it."""
    try:
        _refuse(str(way), os.stat(way.name, dir_fd=parent, follow_symlinks=False), is_last=is_last)
        opened = os.open(way.name, _FOLDER, dir_fd=parent)
    except OSError as error:
        raise ListError(f"{way}: {error.strerror}; make the folder, as root's") from error
    try:
        _refuse(str(way), os.fstat(opened), is_last=is_last)
    except ListError:
        os.close(opened)
        raise
    return opened


def _refuse(path: str, found: os.stat_result, *, is_last: bool = False) -> None:
    problem = cni.rights_problem(path, Rights(found.st_uid, found.st_mode), is_last=is_last)
    if problem:
        raise ListError(problem)
