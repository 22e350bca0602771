"""Reconciles files, folders and links of a node, atomically.

The same as the module host_files does, which needs Ansible on the deployer. Edits are files of which a part is the
cluster's: the functions that the roles use make them, of what the host has.
"""

from __future__ import annotations

import base64
import grp
import os
import pwd
import shutil
import stat
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import mkstemp
from typing import Any, BinaryIO

from isthmus.filters.apptainer import apptainer_conf, apptainer_subid_file
from isthmus.filters.errors import InputError
from isthmus.filters.files import files_with_block
from isthmus.filters.slurm.files import slurm_openmpi
from isthmus.node.errors import JoinError
from isthmus.node.manifest import Entry
from isthmus.support import durable

_MODES = {"file": 0o644, "directory": 0o755}


@dataclass(frozen=True, slots=True)
class Wanted:
    """The desired content of a path.

    Attributes:
        path: the place.
        state: file, directory, link or absent.
        content: of a file; None where it is brought by `Tree.place`.
        target: of a link.
        owner: name of the account.
        group: name of the group.
        mode: of a file or folder.
    """

    path: Path
    state: str = "file"
    content: bytes | None = None
    target: str = ""
    owner: str = "root"
    group: str = "root"
    mode: int = 0o644


def wanted(entry: Entry) -> Wanted:
    """Read an entry of a manifest.

    Raises:
        JoinError: its path is none.
    """
    path, state = Path(entry["path"]), entry.get("state", "file")
    if not path.is_absolute() or ".." in path.parts:
        raise JoinError(f"the manifest has {path}, which is no place; run playbooks/join.yml")
    content = base64.b64decode(entry["base64"]) if "base64" in entry else entry.get("content", "").encode()
    mode = int(entry["mode"], 8) if entry.get("mode") else _MODES.get(state, 0)
    owned = entry.get("owner", "root"), entry.get("group", "root")
    return Wanted(path, state, content, entry.get("target", ""), *owned, mode)


class Tree:
    """The files of a host.

    Args:
        root: where its `/` is; tests have another.
    """

    def __init__(self, root: Path = Path("/")) -> None:
        self._root = root

    def at(self, path: Path | str) -> Path:
        """Where a path of the host's is."""
        return self._root / str(path).lstrip("/")

    def text(self, path: Path | str) -> str:
        """What a file says, "" for none."""
        found = self.at(path)
        return found.read_text() if found.is_file() else ""

    def bring(self, one: Wanted, *, check: bool) -> bool:
        """Reconcile the path; return whether it changed.

        Raises:
            JoinError: something of another kind is in the way.
        """
        path = self.at(one.path)
        if self._is_right(path, one):
            return False
        if check:
            return True
        if one.state == "absent":
            shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
        elif one.state == "directory":
            _make(path)
            _own(path, one)
        elif one.state == "link":
            self._link(path, one.target)
        else:
            self.place(one, lambda file: file.write(one.content or b""))
        durable.sync(path.parent)
        return True

    def place(self, one: Wanted, fill: Callable[[BinaryIO], object]) -> None:
        """Write a file whole, with owner and mode before it has its name."""
        path = self.at(one.path)
        _make(path.parent)
        descriptor, name = mkstemp(dir=path.parent, prefix=f".{path.name}.")
        temporary = Path(name)
        try:
            with os.fdopen(descriptor, "wb") as file:
                fill(file)
            _own(temporary, one)
            durable.move(temporary, path)
        finally:
            temporary.unlink(missing_ok=True)

    def has(self, one: Wanted) -> bool:
        """Return whether it is as desired."""
        return self._is_right(self.at(one.path), one)

    def rights(self, one: Wanted) -> bool:
        """Return whether a file or folder that is there is its owner's, with its mode."""
        found = self.at(one.path).lstat()
        return (found.st_uid, found.st_gid, stat.S_IMODE(found.st_mode)) == (*_ids(one), one.mode)

    def _is_right(self, path: Path, one: Wanted) -> bool:
        there = os.path.lexists(path)
        if one.state == "absent" or not there:
            return there == (one.state != "absent")
        if path.is_symlink() or one.state == "link":
            self._refuse_folder(path, one, path.is_dir() and not path.is_symlink())
            return one.state == "link" and path.is_symlink() and os.readlink(path) == one.target
        self._refuse_folder(path, one, path.is_dir() != (one.state == "directory"))
        return (one.state == "directory" or path.read_bytes() == one.content) and self.rights(one)

    @staticmethod
    def _refuse_folder(path: Path, one: Wanted, blocked: bool) -> None:
        if blocked:
            raise JoinError(
                f"{path} is {'no' if one.state == 'directory' else 'a'} folder; make this node from the image"
            )

    @staticmethod
    def _link(path: Path, target: str) -> None:
        _make(path.parent)
        path.unlink(missing_ok=True)
        path.symlink_to(target)


def _make(folder: Path) -> None:
    """Make a folder, and those above it that lack, whatever this process's umask is."""
    if not folder.is_dir():
        _make(folder.parent)
        folder.mkdir()
        folder.chmod(_MODES["directory"])


def _own(path: Path, one: Wanted) -> None:
    os.chown(path, *_ids(one), follow_symlinks=False)
    path.chmod(one.mode)


def _ids(one: Wanted) -> tuple[int, int]:
    try:
        return pwd.getpwnam(one.owner).pw_uid, grp.getgrnam(one.group).gr_gid
    except KeyError as error:
        raise JoinError(
            f"{one.path}: {error.args[0]}; make this node from the image, which has the packages"
        ) from error


def edited(entry: Entry, text: str) -> str:
    """The desired content of a file of which a part is the cluster's.

    Args:
        entry: of a manifest's `edits`.
        text: what the host has; for Apptainer's settings, those it has by itself.

    Raises:
        JoinError: the host has what cannot be edited so.
    """
    edit = _EDITS.get(entry["kind"])
    if edit is None:
        raise JoinError(f"the manifest edits {entry['path']} in a way {entry['kind']!r}; make the image again")
    try:
        return edit(entry, text)
    except InputError as error:
        raise JoinError(str(error)) from error


def _block(entry: Mapping[str, Any], text: str) -> str:
    return files_with_block(text, entry["mark"], entry["block"], entry.get("after", ""))


def _subids(entry: Mapping[str, Any], text: str) -> str:
    return apptainer_subid_file(text, entry["first"], entry["path"], entry["users"], entry["chosen"], entry["count"])


_EDITS: dict[str, Callable[[Mapping[str, Any], str], str]] = {
    "block": _block,
    "openmpi": lambda entry, text: slurm_openmpi(text, entry["settings"]),
    "apptainer": lambda entry, text: apptainer_conf(text, entry["settings"]),
    "subids": _subids,
}
