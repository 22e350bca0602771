"""`plan`: ordered steps from the observed to the desired state, or refusals with their remedies.

Nothing is stored between runs: a step is due because its result is missing. So an interrupted run is continued by
planning again, and a run after the last one plans nothing.

Slurm's order is slurmdbd, slurmctld, slurmd, clients. All of a host's daemons share one package of plugins, so the
controller's files change at once and its daemons start in that order.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from isthmus.filters.upgrade.state import Database, Host, Observed, Role, Wanted
from isthmus.model import skew


class Verb(StrEnum):
    """Kinds of steps, in their order."""

    ETCD = "etcd"
    WIDEN = "widen"
    CONTROLLER = "controller"
    COMPUTE = "compute"
    LOGIN = "login"
    NARROW = "narrow"
    KUBERNETES = "kubernetes"


@dataclass(frozen=True)
class Step:
    """One step: which program changes from which versions to which, and on which hosts."""

    verb: Verb
    hosts: tuple[str, ...]
    before: str
    after: str


@dataclass(frozen=True)
class Plan:
    """Steps, or refusals that prevent all steps; and hosts that are left for another run."""

    steps: tuple[Step, ...] = ()
    refusals: tuple[str, ...] = ()
    left: tuple[str, ...] = ()


def plan(there: Observed, wanted: Wanted) -> Plan:
    """Compute the plan."""
    refusals = tuple(dict.fromkeys(_refusals(there, wanted)))
    return Plan(() if refusals else tuple(_steps(there, wanted)), refusals, tuple(there.absent))


def is_done(host: Host, version: str) -> bool:
    """Return whether a host has a Slurm version, complete and running."""
    return skew.fits(host.slurm, version) and host.slurm == host.newest and host.wants <= host.current


def _refusals(there: Observed, wanted: Wanted) -> Iterator[str]:
    if wanted.slurm and wanted.manage:
        yield from _slurm_refusals(there, wanted)
    yield from _line_refusals(skew.ETCD, {host.name: host.etcd for host in there.hosts.values()}, wanted.etcd)
    yield from _member_refusals(there, wanted.etcd)
    yield from _line_refusals(
        skew.KUBERNETES, {host.name: host.kubernetes for host in there.hosts.values()}, wanted.kubernetes
    )


def _slurm_refusals(there: Observed, wanted: Wanted) -> Iterator[str]:
    controllers = there.of(Role.CONTROLLER)
    if not controllers:
        yield "the controller does not answer; start it, or mend its SSH: the upgrade begins there"
        return
    if any(host.database is Database.UNREADABLE for host in controllers):
        yield (
            f"the accounting database on {controllers[0].name} cannot be read; look at `slurmdbd -u`,"
            " `systemctl status mariadb` and slurmdbd.log there"
        )
    lacking = [host.name for host in there.hosts.values() if host.roles and not host.slurm]
    if lacking:
        yield f"{_some(lacking)} without Slurm; run site.yml, or playbooks/add_nodes.yml, with slurm_version unchanged"
    yield from _window_refusals(there, wanted.slurm)
    if wanted.pmix and skew.lacks_pmix(wanted.slurm):
        yield from _pmix_refusals(wanted)


def _pmix_refusals(wanted: Wanted) -> Iterator[str]:
    problem = wanted.pmix_problem
    if not skew.fits(skew.SLURM_PMIX, wanted.slurm):
        problem = f"this Isthmus builds it for {skew.SLURM_PMIX} alone"
    if problem:
        yield (
            f"Debian's Slurm {wanted.slurm} has no plugin mpi/pmix, slurm_mpi_default is pmix, and without it every"
            f" srun of Open MPI would fail: {problem}; or set slurm_mpi_default: pmi2 (MPICH's; Open MPI then starts by"
            " mpirun alone), or stay"
        )


def _window_refusals(there: Observed, version: str) -> Iterator[str]:
    seen = {host.name: found for host in there.hosts.values() for found in (host.slurm, host.newest) if found}
    seen |= {name: found for name, found in there.absent.items() if found}
    try:
        target = skew.SLURM.place(version)
        outside = [name for name, found in seen.items() if _back(found, version)]
        newer = [name for name, found in seen.items() if _newer(found, version)]
    except skew.UnknownVersionError as error:
        yield f"{error}; correct slurm_version, or use a newer Isthmus, which knows that release"
        return
    if newer:
        yield (
            f"{_some(newer)} newer than slurm_version {version}, and Slurm cannot go back; set slurm_version to"
            f" {skew.release(seen[newer[0]])}, or go back with data: playbooks/restore.yml -e restore_packages=true"
        )
    if outside:
        middle = skew.SLURM.releases[max(0, target - 1)]
        yield (
            f"{_some(outside)} of Slurm {seen[outside[0]]}, from which {version} cannot be reached: it takes"
            f" {skew.SLURM.reach(version)} releases at once; go by way of {middle} or an older one"
        )


def _back(found: str, version: str) -> bool:
    return skew.SLURM.place(version) >= skew.SLURM.place(found) and not skew.SLURM.accepts(version, found)


def _newer(found: str, version: str) -> bool:
    wanted = skew.numbers(version)
    return skew.numbers(found)[: len(wanted)] > wanted


def _line_refusals(line: skew.Line, found: dict[str, str], version: str) -> Iterator[str]:
    known = {name: each for name, each in found.items() if each}
    if not version:
        return
    for name, each in known.items():
        try:
            right = line.accepts(version, each) or 0 <= line.place(each) - line.place(version) <= line.down
        except skew.UnknownVersionError as error:
            yield f"{error}; use the Isthmus that made the cluster, or a newer one"
            return
        if not right:
            least = line.least.get(skew.release(version), "")
            way = f", from {least} on" if least else ""
            yield (
                f"{name} has {line.name} {each}, and this Isthmus brings {version}; {line.name} goes one release at a"
                f" time{way}: use the Isthmus of the release between first"
            )
            return


def _member_refusals(there: Observed, version: str) -> Iterator[str]:
    running = {host.name for host in there.hosts.values() if host.etcd}
    away = [name for name in there.members if name not in running]
    if away and _etcd_due(there, version):
        yield (
            f"etcd on {', '.join(away)} does not answer, so no further member may stop; look at `journalctl -u"
            ' isthmus-etcd` there and start it, or leave etcd as it is: -e \'{"upgrade_skip": ["etcd"]}\''
        )


def _etcd_due(there: Observed, version: str) -> list[Host]:
    return [host for host in there.hosts.values() if version and host.etcd not in ("", version)]


def _steps(there: Observed, wanted: Wanted) -> Iterator[Step]:
    yield from _step(Verb.ETCD, _etcd_due(there, wanted.etcd), wanted.etcd)
    if wanted.slurm and wanted.manage:
        yield from _slurm_steps(there, wanted.slurm)
    behind = [host for host in there.hosts.values() if host.kubernetes not in ("", wanted.kubernetes)]
    yield from _step(Verb.KUBERNETES, behind if wanted.kubernetes else [], wanted.kubernetes)


def _slurm_steps(there: Observed, version: str) -> Iterator[Step]:
    controllers = there.of(Role.CONTROLLER)
    due = [host for host in there.hosts.values() if host.roles and _is_due(host, version)]
    others = [host for host in due if Role.CONTROLLER not in host.roles]
    if due:
        yield Step(Verb.WIDEN, (controllers[0].name,), "", "")
    yield from _step(Verb.CONTROLLER, [host for host in due if Role.CONTROLLER in host.roles], version)
    yield from _step(Verb.COMPUTE, [host for host in others if Role.COMPUTE in host.roles], version)
    yield from _step(Verb.LOGIN, [host for host in others if Role.COMPUTE not in host.roles], version)
    if due or controllers[0].widened:
        yield Step(Verb.NARROW, (controllers[0].name,), "", "")


def _is_due(host: Host, version: str) -> bool:
    converted = host.database in (Database.NONE, Database.CURRENT)
    return not (is_done(host, version) and converted and not host.drained)


def _step(verb: Verb, hosts: list[Host], after: str) -> Iterator[Step]:
    if hosts:
        versions = [_version(verb, host) for host in hosts]
        yield Step(verb, tuple(host.name for host in hosts), skew.oldest(versions), after)


def _version(verb: Verb, host: Host) -> str:
    return {Verb.ETCD: host.etcd, Verb.KUBERNETES: host.kubernetes}.get(verb, host.slurm)


def _some(names: list[str]) -> str:
    most = 5
    shown = ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")
    return f"{shown} {'is' if len(names) == 1 else 'are'}"
