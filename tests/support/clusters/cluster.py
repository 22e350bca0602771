"""The cluster that an inventory describes: its hosts, reached over SSH, and who plays which part.

Ansible itself renders the inventory's variables, so the tests reach what the playbooks reach.
"""

from __future__ import annotations

import atexit
import functools
import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import testinfra
from testinfra.backend.base import CommandResult
from testinfra.host import Host

ROOT = Path(__file__).parents[3]
BIN = Path(sys.executable).parent
# No command of a user takes so long on a test bed, however busy.
HANGS_S = 300
SSH_OPTIONS = (
    "-o PreferredAuthentications=publickey -o ConnectionAttempts=5 -o ServerAliveInterval=5 -o ServerAliveCountMax=4"
)
VARIABLES = {
    "address": "ansible_host | default(inventory_hostname)",
    "port": "ansible_port | default(22)",
    "user": "ansible_user | default('root')",
    "key": "ansible_ssh_private_key_file | default('')",
    "options": "ansible_ssh_common_args | default('')",
    "become": "ansible_become | default(false)",
    "base_address": "base_address",
    "groups": "group_names",
    "users": "base_users | default([]) | rejectattr('state', 'defined') | map(attribute='name') | list",
    "name": "cluster_name",
    "state_dir": "cluster_state_dir",
    "network_encryption": "network_encryption | default('none')",
    "network_ipv6_range": "network_ipv6_range | default('')",
    "network_drivers": "network_drivers | default(['private'])",
    "apptainer_net_networks": "apptainer_net_networks | default(['bridge'])",
    "apptainer_setuid": "apptainer_setuid | default(false)",
    # Without the variable, every user may.
    "apptainer_net_users": "apptainer_net_users | default(none)",
    "slurm_node": "slurm_node | default({})",
    "slurm_manage": "slurm_manage | default(true)",
    "slurm_prefix": "slurm_prefix | default('/usr')",
    "slurm_conf_extra": "slurm_conf_extra | default({})",
    "slurm_conf_dir": "slurm_conf_dir | default('/etc/slurm')",
    "slurm_mpi_default": "slurm_mpi_default | default('pmix')",
    "slurm_mpi_compilers": "slurm_mpi_compilers | default('openmpi')",
}


@dataclass(frozen=True)
class Node:
    """One host of the inventory, with its rendered variables."""

    name: str
    variables: dict[str, Any]
    host: Host

    def run(self, command: str) -> CommandResult:
        """Run a command as root."""
        return self.host.run(command)

    def answers(self) -> bool:
        """Return whether the host can be reached."""
        try:
            return bool(self.run("true").rc == 0)
        except RuntimeError:  # testinfra's word for ssh that ends with 255
            return False

    def output(self, command: str) -> str:
        """Run a command as root that must succeed; return what it prints."""
        return succeeded(self.run(command))

    def try_as(self, user: str, command: str) -> CommandResult:
        """Run a command in the user's login shell; one that hangs fails."""
        return self.host.run(f"timeout --foreground {HANGS_S} su - {user} -c {shlex.quote(command)}")

    def run_as(self, user: str, command: str) -> str:
        """Run a command that must succeed in the user's login shell; return what it prints."""
        return succeeded(self.try_as(user, command))


@dataclass(frozen=True)
class Cluster:
    """The nodes by name and by part."""

    nodes: dict[str, Node]

    def part(self, group: str) -> list[Node]:
        """Return the nodes of a group."""
        return [node for node in self.nodes.values() if group in node.variables["groups"]]

    @property
    def controller(self) -> Node:
        """The head node."""
        return self.part("controller")[0]

    @property
    def submit(self) -> Node:
        """Where users submit: the first login node, else the controller."""
        return (self.part("login") or self.part("controller"))[0]

    @property
    def computes(self) -> list[Node]:
        """Where jobs run."""
        return self.part("compute")

    @property
    def users(self) -> list[str]:
        """The ordinary users of the site."""
        return list(self.controller.variables["users"])


def succeeded(result: CommandResult) -> str:
    """Return what a command printed; fail with both streams when it failed."""
    assert result.rc == 0, f"{result.command}\nrc {result.rc}\n{result.stdout}\n{result.stderr}"
    return result.stdout.strip()


def rendered(inventory: list[str]) -> dict[str, dict[str, Any]]:
    """Let Ansible render the variables of every host; no host is contacted."""
    pairs = ", ".join(f"'{name}': {expression}" for name, expression in VARIABLES.items())
    sources = [argument for source in inventory for argument in ("-i", source)]
    command = [str(BIN / "ansible"), *sources, "all", "-m", "ansible.builtin.debug", "-a", f"msg={{{{ {{{pairs}}} }}}}"]
    environment = os.environ | {"ANSIBLE_STDOUT_CALLBACK": "ansible.posix.json", "ANSIBLE_LOAD_CALLBACK_PLUGINS": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    # Other callbacks may print after the JSON.
    result, _ = json.JSONDecoder().raw_decode(done.stdout[done.stdout.index("{") :])
    return {name: host["msg"] for name, host in result["plays"][0]["tasks"][0]["hosts"].items()}


@functools.cache
def sockets() -> Path:
    """Return a folder for the sockets of this process's connections; they end a minute after their last command."""
    folder = Path(tempfile.mkdtemp(prefix="isthmus-ssh-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def connect(variables: dict[str, Any]) -> Host:
    """Return testinfra's view of one host.

    All commands share one connection, which costs 12 ms a command and not 250; testinfra asks for that, but OpenSSH
    does it only where it is given a path. When the host dies, the connection does within 20 s.
    """
    return testinfra.get_host(
        f"ssh://{variables['user']}@{variables['address']}:{variables['port']}",
        ssh_identity_file=variables["key"] or None,
        ssh_extra_args=f"{SSH_OPTIONS} {variables['options']}".strip(),
        controlpath=sockets() / f"{variables['address']}:{variables['port']}",
        sudo=variables["become"],
    )


def load(inventory: list[str]) -> Cluster:
    """Return the cluster described by these inventory sources."""
    return Cluster({name: Node(name, each, connect(each)) for name, each in rendered(inventory).items()})


def inventory_sources() -> list[str]:
    """Return the inventory under test: ISTHMUS_INVENTORY, several joined by colons."""
    return os.environ.get("ISTHMUS_INVENTORY", "inventories/local").split(":")
