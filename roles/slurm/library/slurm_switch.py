"""The module `slurm_switch`: the packages of a folder, all at once, without a mirror and without starting a daemon.

For an upgrade and for the way back. Daemons are started afterwards, in their order, by who called.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ansible.module_utils.basic import AnsibleModule

POLICY = Path("/usr/sbin/policy-rc.d")
NO_DAEMON = "#!/bin/sh\nexit 101\n"
LATER = ".before-isthmus"
SOURCE = "slurm-wlm"
APT = ["apt-get", "--assume-yes", "--no-install-recommends", "--allow-change-held-packages", "--allow-downgrades"]
OPTIONS = ["-o", "Dpkg::Options::=--force-confdef", "-o", "Dpkg::Options::=--force-confold"]
FORMAT = "${source:Package} ${Package} ${Version} ${db:Status-Want} ${db:Status-Status}\\n"
FIELDS = ["Package", "Version"]


@contextmanager
def no_daemons(policy: Path) -> Iterator[None]:
    """Keep packages from starting, restarting or stopping daemons; an interrupted run's file is replaced."""
    aside = policy.with_name(policy.name + LATER)
    if policy.exists() and policy.read_text() != NO_DAEMON:
        policy.replace(aside)
    policy.write_text(NO_DAEMON)
    policy.chmod(0o755)
    try:
        yield
    finally:
        policy.unlink()
        if aside.exists():
            aside.replace(policy)


def lacking(archives: dict[str, tuple[str, str]], told: str) -> list[str]:
    """Files whose package is not installed in their version; file -> (name, version)."""
    rows = (line.split() for line in told.splitlines())
    there = {(row[-4], row[-3]) for row in rows if row[-1] == "installed"}
    return [file for file, package in archives.items() if package not in there]


def loose(told: str) -> list[str]:
    """Packages of Slurm that are installed and not held."""
    rows = (line.split() for line in told.splitlines() if line.startswith(f"{SOURCE} "))
    return [row[1] for row in rows if row[3:] == ["install", "installed"]]


class Switch:
    """Installs on this host."""

    def __init__(self, module: AnsibleModule) -> None:
        self.module = module

    def run(self, *command: str) -> str:
        """Run a program; one that fails ends the module."""
        environment = {"DEBIAN_FRONTEND": "noninteractive", "PATH": os.environ.get("PATH", "") + ":/usr/sbin:/sbin"}
        _, out, _ = self.module.run_command(list(command), environ_update=environment, check_rc=True)
        return str(out)

    def packages(self) -> str:
        """What dpkg has."""
        return self.run("dpkg-query", "--show", f"--showformat={FORMAT}")

    def archives(self, folder: Path) -> dict[str, tuple[str, str]]:
        """File -> name and version of the package in it."""
        found = {}
        for file in sorted(folder.glob("*.deb")):
            fields = self.run("dpkg-deb", "--show", "--showformat=${Package} ${Version}", str(file)).split()
            found[str(file)] = (fields[0], fields[1])
        return found


def main() -> None:
    """Install what is not there in that version, and hold Slurm."""
    module = AnsibleModule(
        {"folder": {"type": "path", "required": True}, "held": {"type": "bool", "default": True}},
        supports_check_mode=False,
    )
    switch, folder = Switch(module), Path(module.params["folder"])
    archives = switch.archives(folder)
    if not archives:
        module.fail_json(
            msg=f"{folder} has no packages; run playbooks/upgrade.yml from its beginning, which fetches them"
        )
    due = lacking(archives, switch.packages())
    if due:
        with no_daemons(POLICY):
            switch.run(*APT, *OPTIONS, "install", *archives)
    free = loose(switch.packages()) if module.params["held"] else []
    if free:
        switch.run("apt-mark", "hold", *free)
    module.exit_json(changed=bool(due or free), installed=[archives[file][0] for file in due])


if __name__ == "__main__":
    main()
