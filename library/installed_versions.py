"""The module `installed_versions`: what a host has of Slurm, etcd and Kubernetes, and what it runs of that.

It changes nothing. A daemon counts as current when it runs of the files that are there: after a package was unpacked,
the program of a process that began before is one that was removed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from functools import cmp_to_key
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.dpkg import question, slurm_programs
from ansible.module_utils.etcd_version import running
from ansible.module_utils.urls import open_url

PROC = Path("/proc")
DAEMONS = ("slurmctld", "slurmdbd", "slurmd", "sackd")
# What `slurmdbd -u` ends with.
CONVERTED, DUE = 0, 1
# It asks a MariaDB that refuses it again and again, for ever.
WITHIN = ("timeout", "--kill-after=5", "30")
WIDENED = "# Widened for an upgrade."
NODE = re.compile(r"^NodeName=(\S+)", re.MULTILINE)
GONE = " (deleted)"
# Debian's newer packages choose between two builds of a daemon by a link; this is the one for real clusters.
BUILD = "-wlm"


def current(proc: Path) -> list[str]:
    """Daemons that run of the program that is there; a stepd is a slurmd's child of another name."""
    found: dict[str, list[bool]] = {}
    for process in proc.iterdir():
        try:
            program = str((process / "exe").readlink()) if process.name.isdecimal() else ""
        except OSError:
            continue
        name = program.removesuffix(GONE).rpartition("/")[2].removesuffix(BUILD)
        if name in DAEMONS:
            found.setdefault(name, []).append(not program.endswith(GONE))
    return sorted(name for name, states in found.items() if all(states))


def nodes(shown: str) -> dict[str, dict[str, str]]:
    """Version and reason of each node, as in `scontrol --oneliner show nodes`."""
    found = {}
    for line in shown.splitlines():
        if name := NODE.match(line):
            version = re.search(r" Version=(\S+)", line)
            reason = re.search(r" Reason=(.*?)(?: \[\S+@\S+\])?(?: Comment=|\s*$)", line)
            found[name[1]] = {"version": version[1] if version else "", "reason": reason[1] if reason else ""}
    return found


def text(path: str) -> str:
    """A file's text, "" for none."""
    file = Path(path)
    return file.read_text(errors="replace") if file.is_file() else ""


def kubernetes(settings: str) -> str:
    """Version of the API server that `isthmus up` would start, "" for none."""
    try:
        return str(json.loads(settings or "{}").get("versions", {}).get("kube-apiserver", "")).removeprefix("v")
    except (ValueError, AttributeError):
        return ""


class Asker:
    """Runs programs on this host."""

    def __init__(self, module: AnsibleModule) -> None:
        self.module = module

    def answer(self, *command: str) -> str:
        """What a program prints, "" where it is not there or fails."""
        if not self.module.get_bin_path(command[0]):
            return ""
        code, out, _ = self.module.run_command(list(command))
        return "" if code else str(out)

    def database(self) -> str:
        """Whether accounting's tables are those of the slurmdbd that is installed."""
        if not self.module.get_bin_path("slurmdbd"):
            return "none"
        code, _, _ = self.module.run_command([*WITHIN, "runuser", "--user=slurm", "--", "/usr/sbin/slurmdbd", "-u"])
        return {CONVERTED: "current", DUE: "due"}.get(code, "unreadable")

    def is_newer(self, one: str, other: str) -> bool:
        """Return whether a Debian version is newer than another."""
        code, _, _ = self.module.run_command(["dpkg", "--compare-versions", one, "gt", other])
        return code == 0

    def slurm(self) -> dict[str, Any]:
        """Its packages: the oldest version among them, the newest, and whether apt may move none."""
        found = slurm_programs(self.answer(*question()))
        ordered = ordered_versions({package.version for package in found.values()}, self.is_newer)
        return {
            "oldest": ordered[0] if ordered else "",
            "newest": ordered[-1] if ordered else "",
            "held": all(package.held for package in found.values()),
            "packages": {name: package.version for name, package in found.items()},
        }

    def state(self, etcd_url: str, is_controller: bool) -> dict[str, Any]:
        """All of it, by name."""
        return {
            "slurm": self.slurm(),
            "current": current(PROC),
            "database": self.database() if is_controller else "none",
            "widened": WIDENED in text("/etc/slurm/slurm.conf").splitlines(),
            "nodes": nodes(self.answer("scontrol", "--all", "--oneliner", "show", "nodes")) if is_controller else {},
            "etcd": running(etcd_url, open_url),
            "kubernetes": kubernetes(text("/etc/isthmus/kubernetes.json")),
        }


def ordered_versions(versions: Iterable[str], is_newer: Callable[[str, str], bool]) -> list[str]:
    """Versions, the oldest first."""
    return sorted(versions, key=cmp_to_key(lambda one, other: 1 if is_newer(one, other) else -1))


def main() -> None:
    """Look."""
    options = {"etcd": {"type": "str", "default": ""}, "controller": {"type": "bool", "default": False}}
    module = AnsibleModule(options, supports_check_mode=True)
    module.exit_json(changed=False, **Asker(module).state(module.params["etcd"], module.params["controller"]))


if __name__ == "__main__":
    main()
