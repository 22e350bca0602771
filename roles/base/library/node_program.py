"""The module `node_program`: this version of Isthmus in a host's venv, from wheels in an archive.

Of use only where base_state has not found the mark of this version. The mark goes first and comes last: neither a half
installation nor a way back is taken for whole. Dependencies are installed only where the lock differs from the one
that the venv was made by, as most new versions, and an image of a node, have them already.
"""

from __future__ import annotations

import os
import shutil
from hashlib import sha256
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule

ARGUMENTS = {
    "prefix": {"type": "path", "required": True},
    "archive": {"type": "path", "required": True},
    "key": {"type": "str", "required": True, "no_log": False},
    "lock": {"type": "str", "required": True},
    "link": {"type": "path", "default": "/usr/local/bin/isthmus"},
    "completion": {"type": "path", "default": "/etc/bash_completion.d/isthmus"},
}


def write(path: Path, text: str) -> None:
    """Write a file that everybody may read, whole or not at all."""
    temporary = path.with_name(f".{path.name}.part")
    with temporary.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    temporary.chmod(0o644)
    temporary.replace(path)


class Installation:
    """One host's venv."""

    def __init__(self, module: AnsibleModule, asked: dict[str, Any]) -> None:
        self.module, self.asked = module, asked
        self.prefix, self.archive = Path(asked["prefix"]), Path(asked["archive"])
        self.wheels = self.prefix / "wheels"

    def run(self, *words: str | Path) -> str:
        """Run a program; a failure ends the task."""
        code, out, error = self.module.run_command([str(word) for word in words])
        if code:
            self.module.fail_json(msg=f"{words[0]} failed: {(error or out).strip()}")
        return str(out)

    def install(self) -> None:
        """Bring it about, step by step; a step that was cut off is done again by the next run."""
        self._unpack()
        if not (self.prefix / "bin/pip").exists():
            self.run("python3", "-m", "venv", self.prefix)
        lock = self.prefix / "lock"
        known = sha256(lock.read_bytes()).hexdigest() if lock.is_file() else ""
        if known != sha256(self.asked["lock"].encode()).hexdigest():
            lock.unlink(missing_ok=True)
            self._pip()
            write(lock, self.asked["lock"])
        else:
            self._pip("--no-deps")
        self._offer()
        for mark in (self.prefix / "program", self.wheels / f".installed-{self.asked['key']}"):
            write(mark, f"{self.asked['key']}\n")
        self.archive.unlink()

    def _unpack(self) -> None:
        shutil.rmtree(self.wheels, ignore_errors=True)
        self.wheels.mkdir(mode=0o755, parents=True)
        self.run("tar", "--extract", "--no-same-owner", "--file", self.archive, "--directory", self.wheels)

    def _pip(self, *words: str) -> None:
        found = ("--no-index", "--find-links", self.wheels, "--force-reinstall")
        self.run(self.prefix / "bin/pip", "install", "--quiet", *found, *words, "isthmus")

    def _offer(self) -> None:
        """Put it on the users' PATH, and have bash complete it."""
        program, link = self.prefix / "bin/isthmus", Path(self.asked["link"])
        if not link.is_symlink() or link.readlink() != program:
            link.unlink(missing_ok=True)
            link.symlink_to(program)
        write(Path(self.asked["completion"]), self.run(program, "completion", "bash"))


def main() -> None:
    """Install it."""
    module = AnsibleModule(ARGUMENTS, supports_check_mode=True)
    if not module.check_mode:
        try:
            Installation(module, module.params).install()
        except OSError as error:
            module.fail_json(msg=str(error))
    module.exit_json(changed=True)


if __name__ == "__main__":
    main()
