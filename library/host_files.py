"""The module `host_files`: several files, folders and links of a host in one go.

`ansible.builtin.copy` and `file` go to the host once or twice for each of them; a role has a dozen. They are root's
where nothing else is said; an empty owner and group mean the user who runs the task.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from tempfile import mkstemp
from typing import Any

from ansible.module_utils.basic import AnsibleModule

ENTRY = {
    "path": {"type": "path", "required": True},
    "state": {"type": "str", "choices": ["file", "directory", "link", "absent"], "default": "file"},
    "content": {"type": "str"},
    "target": {"type": "path"},
    "owner": {"type": "str", "default": "root"},
    "group": {"type": "str", "default": "root"},
    "mode": {"type": "str"},
}
NEEDS = [("state", "file", ("content",)), ("state", "link", ("target",))]
MODES = {"file": "0644", "directory": "0755"}


class BlockedError(Exception):
    """Something of another kind is in the way."""


def remove(path: Path) -> None:
    """Remove a file, a link or a folder with all in it."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()


def link(path: Path, target: str) -> None:
    """Make a link, in place of another or of a file."""
    path.unlink(missing_ok=True)
    path.symlink_to(target)


def is_right(path: Path, state: str, wanted: dict[str, Any]) -> bool:
    """Return whether an entry is as desired, but for owner and mode.

    Raises:
        BlockedError: a folder is where a file or link belongs, or the other way round.
    """
    if state == "absent":
        return not os.path.lexists(path)
    if state == "link":
        if path.is_dir() and not path.is_symlink():
            raise BlockedError(f"{path} is a folder; move it away")
        return path.is_symlink() and str(path.readlink()) == wanted["target"]
    if os.path.lexists(path) and path.is_dir() != (state == "directory"):
        raise BlockedError(f"{path} is {'no' if state == 'directory' else 'a'} folder; move it away")
    if state == "directory" or path.is_symlink() or not path.exists():
        return state == "directory" and path.is_dir()
    return path.read_bytes() == wanted["content"].encode()


def attributes(module: AnsibleModule, path: Path | str, wanted: dict[str, Any], changed: bool) -> bool:
    """Give a file or folder its owner and mode; return whether it has changed by now."""
    owned = {key: wanted[key] or None for key in ("owner", "group")}
    output = wanted | owned | {"path": str(path), "mode": wanted["mode"] or MODES[wanted["state"]]}
    return module.set_fs_attributes_if_different(module.load_file_common_arguments(output), changed)


def write(module: AnsibleModule, path: Path, wanted: dict[str, Any]) -> None:
    """Write a file whole or not at all; it has owner and mode before it has its name."""
    descriptor, temporary = mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(wanted["content"].encode())
            file.flush()
            os.fsync(descriptor)
        attributes(module, temporary, wanted, changed=True)
        Path(temporary).replace(path)
    finally:
        Path(temporary).unlink(missing_ok=True)


def make(module: AnsibleModule, path: Path, wanted: dict[str, Any]) -> None:
    """Bring an entry about."""
    if wanted["state"] == "absent":
        remove(path)
    elif wanted["state"] == "link":
        link(path, wanted["target"])
    elif wanted["state"] == "directory":
        path.mkdir(parents=True)
    else:
        write(module, path, wanted)


def bring(module: AnsibleModule, wanted: dict[str, Any]) -> bool:
    """Bring an entry about, with owner and mode; return whether it had to change."""
    path, state = Path(wanted["path"]), wanted["state"]
    changed = not is_right(path, state, wanted)
    if changed and not module.check_mode:
        make(module, path, wanted)
    if state not in MODES or not path.exists():
        return changed
    return attributes(module, path, wanted, changed)


def main() -> None:
    """Bring all of them about, in their order."""
    files = {"type": "list", "elements": "dict", "required": True, "options": ENTRY, "required_if": NEEDS}
    module = AnsibleModule({"files": files}, supports_check_mode=True)
    try:
        changed = [wanted["path"] for wanted in module.params["files"] if bring(module, wanted)]
    except (BlockedError, OSError) as error:
        module.fail_json(msg=str(error))
    module.exit_json(changed=bool(changed), paths=changed)


if __name__ == "__main__":
    main()
