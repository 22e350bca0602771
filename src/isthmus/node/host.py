"""The observed state of a node, and how each kind of resource is changed on it."""

from __future__ import annotations

import json
import os
import re
import socket
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from isthmus.clients import process
from isthmus.clients.process import ProcessError
from isthmus.node.errors import JoinError
from isthmus.node.files import Tree
from isthmus.node.manifest import Entry, When
from isthmus.support.modules import dpkg

# What a file of a folder needs before it counts.
_FOLLOWS = {
    "/etc/tmpfiles.d/": ("systemd-tmpfiles", "--create"),
    "/etc/sysctl.d/": ("sysctl", "--quiet", "--load"),
}
_TRUSTED = "/usr/local/share/ca-certificates/"
_RESOLVED = "/run/systemd/resolve/"
_RUNS = {"active", "reloading", "refreshing"}
_INSTALL_S = 900

Run = Callable[..., process.Finished]


class Unit(NamedTuple):
    """What systemd says of a unit."""

    load: str
    enabled: bool
    runs: bool
    began: float


class Host:
    """This host.

    Args:
        tree: its files.
        run: how commands are run.
    """

    def __init__(self, tree: Tree, run: Run = process.run) -> None:
        self.tree, self._run = tree, run

    def command(self, *words: str, text: str | None = None) -> str:
        """Run a command that must succeed.

        Raises:
            JoinError: it did not.
        """
        try:
            return self._run(words, timeout_s=120, input_text=text).stdout
        except ProcessError as error:
            raise JoinError(f"{error}; mend that, then run `isthmus node join` again") from error

    def answer(self, *words: str) -> str:
        """What a command says, "" where it is not there or fails."""
        try:
            return self._run(words, timeout_s=30).stdout.strip()
        except ProcessError:
            return ""

    def kinds(self) -> set[When]:
        """Which entries with `when` are for this host."""
        resolved = self.answer("systemctl", "is-active", "systemd-resolved") == "active"
        machine = self.answer("systemd-detect-virt", "--container") in ("", "none")
        return {When.RESOLVED if resolved else When.UNRESOLVED, *([When.MACHINE] if machine else [])}

    def resolver(self) -> str:
        """Who answers this host's questions for names, as role network has it."""
        path = self.tree.at("/etc/resolv.conf")
        linked = path.is_symlink() and os.readlink(path).startswith(_RESOLVED)
        return "systemd-resolved" if linked and When.RESOLVED in self.kinds() else "resolv.conf"

    def addresses(self) -> set[str]:
        """IPv4 addresses of its interfaces."""
        output = json.loads(self.command("ip", "-json", "-4", "address") or "[]")
        return {str(each["local"]) for link in output for each in link.get("addr_info", [])}

    def address_towards(self, server: str) -> str:
        """Its IPv4 address on the way to `host:port`; nothing is sent.

        Raises:
            JoinError: there is no way.
        """
        host, _, port = server.rpartition(":")
        try:
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as way:
                way.connect((host, int(port)))
                return str(way.getsockname()[0])
        except OSError as error:
            raise JoinError(f"no way leads to {server} ({error}); look at this host's network") from error

    def install(self, names: Sequence[str]) -> None:
        """Install packages, while another program of the host's first start may do the same.

        Raises:
            JoinError: they are not to be had.
        """
        apt = ("env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-o", "DPkg::Lock::Timeout=300", "-qq")
        for words in (("update",), ("install", "--yes", "--no-install-recommends", *names)):
            try:
                self._run([*apt, *words], timeout_s=_INSTALL_S)
            except ProcessError as error:
                remedy = f"give this host sources of {', '.join(names)}, or an image with them"
                raise JoinError(f"{error}; {remedy}") from error

    def packages(self, names: Iterable[str]) -> dict[str, str]:
        """Name -> version of those that are installed."""
        # dpkg-query fails when it lacks one, and prints the others.
        try:
            output = self._run(dpkg.question(names), timeout_s=30).stdout
        except ProcessError as error:
            output = error.stdout
        return {name: package.version for name, package in dpkg.installed(output).items()}

    def name(self) -> str:
        """Its short host name."""
        return socket.gethostname().partition(".")[0].lower()

    def set_name(self, name: str, *, check: bool) -> bool:
        """Give it a name; return whether it had another."""
        if socket.gethostname() == name and self.tree.text("/etc/hostname").strip() == name:
            return False
        if not check:
            self.command("hostnamectl", "hostname", name)
        return True

    def follow(self, paths: Iterable[str]) -> None:
        """Make the files count that are nothing by themselves."""
        paths = list(paths)
        for path in paths:
            for folder, words in _FOLLOWS.items():
                if path.startswith(folder):
                    self.command(*words, path)
        if any(path.startswith(_TRUSTED) for path in paths):
            self.command("update-ca-certificates")

    def alternative(self, name: str, path: str, *, check: bool) -> bool:
        """Let a name of update-alternatives(1) stand for a path; return whether it did not."""
        link = self.tree.at(f"/etc/alternatives/{name}")
        if link.is_symlink() and os.readlink(link) == path:
            return False
        if not check:
            self.command("update-alternatives", "--set", name, path)
        return True

    def mask(self, name: str, *, check: bool) -> bool:
        """Keep a unit from running; return whether it could."""
        if self.answer("systemctl", "show", "--property=LoadState", "--value", name) == "masked":
            return False
        if not check:
            self.command("systemctl", "mask", "--now", name)
        return True

    def mount(self, entry: Entry, *, check: bool) -> bool:
        """Mount a file system now and at each boot; return whether it was not."""
        line = f"{entry['source']} {entry['path']} {entry['type']} {entry['options']} 0 0"
        table = self.tree.text("/etc/fstab")
        known = line in (" ".join(each.split()) for each in table.splitlines())
        mounted = bool(self.answer("findmnt", "--noheadings", "--types", f"{entry['type']},nfs4", entry["path"]))
        if known and mounted:
            return False
        if not check and not known:
            rest = [each for each in table.splitlines() if each.split()[1:2] != [entry["path"]]]
            path = self.tree.at("/etc/fstab")
            path.write_text("".join(f"{each}\n" for each in [*rest, line]))
        if not check and not mounted:
            self.command("mount", entry["path"])
        return True

    def units(self, names: Sequence[str]) -> list[Unit]:
        """What systemd says of units."""
        if not names:
            return []
        asked = "LoadState,ActiveState,UnitFileState,ExecMainStartTimestampMonotonic"
        shown = self.command("systemctl", "show", f"--property={asked}", "--", *names)
        since = time.time() - time.clock_gettime(time.CLOCK_MONOTONIC)
        return [_unit(block, since) for block in shown.strip().split("\n\n")]

    def run_unit(self, entry: Entry, *, check: bool) -> list[str]:
        """Enable and start a unit, or start it again on files that are newer than its process; return what was done."""
        name = entry["name"]
        unit = self.units([name])[0]
        if unit.load == "not-found" and check:
            return [f"{name} enabled", f"{name} started"]
        if unit.load != "loaded":
            raise JoinError(f"{name} is {unit.load}; make this node from the image, which has the packages")
        changed = max((_changed(self.tree.at(path)) for path in entry["files"]), default=0.0)
        done = [] if unit.enabled else ["enable"]
        if not unit.runs:
            done.append("start")
        elif changed > unit.began:
            done.append("restart")
        for verb in [] if check else done:
            self.command("systemctl", verb, name)
        return [f"{name} {verb}{'d' if verb.endswith('e') else 'ed'}" for verb in done]


def _changed(path: Path) -> float:
    # Not mtime, which copies and archives keep.
    return path.stat().st_ctime if path.exists() else 0.0


def _unit(block: str, since: float) -> Unit:
    output = dict(line.partition("=")[::2] for line in block.splitlines())
    began = since + int(output.get("ExecMainStartTimestampMonotonic") or 0) / 1e6
    enabled = bool(re.fullmatch("enabled|static|indirect|alias|generated", output["UnitFileState"]))
    return Unit(output["LoadState"], enabled, output["ActiveState"] in _RUNS, began)
