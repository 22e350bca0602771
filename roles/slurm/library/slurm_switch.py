"""The module `slurm_switch`: the packages of a folder, all at once, without a mirror and without starting a daemon.

For an upgrade and for the way back. Daemons are started afterwards, in their order, by who called. The deployer's own
plugin mpi/pmix goes where the folder has none: it is of one Slurm alone, and an older one brings the files itself.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.dpkg import SLURM_PMIX, installed, of_slurm, question

POLICY = Path("/usr/sbin/policy-rc.d")
NO_DAEMON = "#!/bin/sh\nexit 101\n"
LATER = ".before-isthmus"
APT = ["apt-get", "--assume-yes", "--no-install-recommends", "--allow-change-held-packages", "--allow-downgrades"]
OPTIONS = ["-o", "Dpkg::Options::=--force-confdef", "-o", "Dpkg::Options::=--force-confold"]


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


def lacking(archives: dict[str, tuple[str, str]], output: str) -> list[str]:
    """Files whose package is not installed in their version; file -> (name, version)."""
    there = {(name, package.version) for name, package in installed(output).items()}
    return [file for file, package in archives.items() if package not in there]


def obsolete(archives: dict[str, tuple[str, str]], output: str) -> list[str]:
    """The deployer's own package, where it is installed and not among the archives."""
    return [SLURM_PMIX] if SLURM_PMIX in installed(output) and SLURM_PMIX not in dict(archives.values()) else []


def loose(output: str) -> list[str]:
    """Packages of Slurm that are installed and not held."""
    return [name for name, package in of_slurm(output).items() if not package.held]


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
        return self.run(*question())

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
    there = switch.packages()
    due, going = lacking(archives, there), obsolete(archives, there)
    if due or going:
        with no_daemons(POLICY):
            switch.run(*APT, *OPTIONS, "install", *archives, *(f"{name}-" for name in going))
    free = loose(switch.packages()) if module.params["held"] else []
    if free:
        switch.run("apt-mark", "hold", *free)
    module.exit_json(changed=bool(due or going or free), installed=[archives[file][0] for file in due], removed=going)


if __name__ == "__main__":
    main()
