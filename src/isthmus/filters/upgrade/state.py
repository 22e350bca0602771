"""Observed versions of hosts, from module `installed_versions`, and the inventory's desired ones."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class Role(StrEnum):
    """The role of a host; its value is the inventory's group."""

    CONTROLLER = "controller"
    COMPUTE = "compute"
    LOGIN = "login"


class Database(StrEnum):
    """The accounting database's schema, compared with the installed slurmdbd."""

    NONE = "none"
    CURRENT = "current"
    DUE = "due"
    UNREADABLE = "unreadable"


# Daemons that must run the installed files.
DAEMONS = {
    Role.CONTROLLER: ("slurmdbd", "slurmctld"),
    Role.COMPUTE: ("slurmd",),
    Role.LOGIN: ("sackd",),
}


@dataclass(frozen=True)
class Host:
    """One host.

    Attributes:
        name: in the inventory.
        roles: groups that it is in.
        slurm: Debian version of its Slurm, the oldest where its packages differ; "" for none.
        newest: the newest, where they differ.
        current: daemons that run the installed files; others are stopped, or run older ones.
        held: apt holds its Slurm packages.
        drained: this playbook has drained it.
        database: of the controller.
        widened: the controller's timeouts are those of an upgrade.
        etcd: version of the member that runs; "" for none.
        kubernetes: version that `isthmus up` would start; "" for none.
    """

    name: str
    roles: frozenset[Role] = frozenset()
    slurm: str = ""
    newest: str = ""
    current: frozenset[str] = frozenset()
    held: bool = True
    drained: bool = False
    database: Database = Database.NONE
    widened: bool = False
    etcd: str = ""
    kubernetes: str = ""

    @property
    def wants(self) -> frozenset[str]:
        """Return the daemons that must run on it; the controller's commands need no sackd."""
        own = self.roles - {Role.LOGIN} or self.roles
        return frozenset(name for role in own for name in DAEMONS[role])


@dataclass(frozen=True)
class Observed:
    """The observed cluster.

    Attributes:
        hosts: name -> host, of those that answered.
        absent: name -> its Slurm as the controller last saw it, "" for unknown, of those that did not answer.
        members: names of etcd's, whether they answer or not.
    """

    hosts: Mapping[str, Host]
    absent: Mapping[str, str]
    members: tuple[str, ...] = ()

    def of(self, role: Role) -> list[Host]:
        """Return the hosts of a role, in their order."""
        return [host for host in self.hosts.values() if role in host.roles]


@dataclass(frozen=True)
class Wanted:
    """The desired versions; "" leaves a program as it is.

    Attributes:
        slurm: a version or its prefix: 26.05.
        manage: Slurm is managed by the role.
        pmix: jobs need the plugin mpi/pmix.
        pmix_problem: why the deployer cannot build it for a Slurm that lacks it, with the remedy; "" where it can.
        etcd: version of this tree.
        kubernetes: version of this tree.
    """

    slurm: str = ""
    manage: bool = True
    pmix: bool = False
    pmix_problem: str = ""
    etcd: str = ""
    kubernetes: str = ""


def observed(groups: Mapping[str, Iterable[str]], found: Mapping[str, Mapping[str, Any]]) -> Observed:
    """Parse the module's results.

    Args:
        groups: Ansible's.
        found: host -> the module's result, of those that answered.
    """
    members = {role: {*groups.get(role, ())} for role in Role}
    controller: Mapping[str, Any] = next((found[name] for name in groups.get(Role.CONTROLLER, ()) if name in found), {})
    nodes: Mapping[str, Mapping[str, str]] = controller.get("nodes", {})
    names = list(dict.fromkeys(name for group in [*Role, "etcd", "kubernetes"] for name in groups.get(group, ())))
    hosts = {
        name: _host(name, found[name], frozenset(role for role in Role if name in members[role]), nodes.get(name, {}))
        for name in names
        if name in found
    }
    absent = {name: nodes.get(name, {}).get("version", "") for name in names if name not in found}
    return Observed(hosts, absent, tuple(groups.get("etcd", ())))


def _host(name: str, observed: Mapping[str, Any], roles: frozenset[Role], node: Mapping[str, str]) -> Host:
    return Host(
        name,
        roles,
        slurm=observed["slurm"]["oldest"],
        newest=observed["slurm"]["newest"],
        current=frozenset(observed["current"]),
        held=observed["slurm"]["held"],
        drained=node.get("reason", "").startswith(DRAIN),
        database=Database(observed["database"]) if Role.CONTROLLER in roles else Database.NONE,
        widened=observed["widened"] if Role.CONTROLLER in roles else False,
        etcd=observed["etcd"],
        kubernetes=observed["kubernetes"],
    )


# Prefix of the reason of such a drain.
DRAIN = "isthmus: upgrade "
