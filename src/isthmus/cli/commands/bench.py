"""`isthmus bench`: the papers' measurements on this cluster, by an ordinary user."""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import Console

from isthmus.bench import about, plan, preparing, results, running
from isthmus.bench.kubernetes import Kubernetes
from isthmus.bench.launches import Column, Launch
from isthmus.bench.plain.turns import Sides, TurnError
from isthmus.bench.plan import Cluster, Plan
from isthmus.bench.preparing import Folder, PreparingError
from isthmus.bench.results import Document, ResultsError
from isthmus.bench.running import Platform, Session
from isthmus.bench.scripts import Site
from isthmus.bench.sizes import SIZES, Table
from isthmus.bench.slurm import Slurm
from isthmus.cli import plain_kubernetes, user_cluster
from isthmus.cli.commands import info
from isthmus.cli.commands import pull as pulling
from isthmus.cli.commands.workloads import server
from isthmus.cli.errors import CommandError
from isthmus.cli.plain_kubernetes import Beside, beside
from isthmus.clients.kube.apiserver import ApiServer
from isthmus.clients.kube.errors import KubeError
from isthmus.clients.slurm.commands import SlurmError
from isthmus.clients.slurm.offer import offer
from isthmus.images.errors import ImageError
from isthmus.images.pull import pull
from isthmus.model.images import parse
from isthmus.workloads import installing
from isthmus.workloads.offer import WorkloadError
from isthmus.workloads.offer import read as workloads

_MPIJOBS = "mpi"
# States of sinfo(1) in which a node accepts jobs.
_TAKING = ("IDLE", "MIXED", "ALLOCATED")
# Runs are left, as a limit was reached; not one of timeout(1)'s statuses.
LEFT = 3
DESCRIPTION = """Measure this cluster as the papers measured theirs, in jobs and in your own Kubernetes.

Rounds run every cell of the tables once, in a random order, so that what else the cluster does falls on all of them.
Each result is stored at once: an interrupted session is resumed by the same command."""
EPILOG = """examples:
  isthmus bench plan                         what would run, what would not and why, and the time
  isthmus bench run                          all of it, at the size of a small machine
  isthmus bench run --tables table3,ep --rounds 10
  isthmus bench run --limit 10               continue for ten minutes; exit status 3 while runs are left
  isthmus bench run --size paper             as large as in the papers: days
  isthmus bench run --plain-kubernetes plain.conf --plain-start 'ssh root@head systemctl start plain' \
    --plain-stop 'ssh root@head systemctl stop plain'

tables: table3 finite elements, table4 latency and bandwidth, table5 and table6 scaling of an HPCG-like program,
figure2 starts of steps, figure3 HPL-like and HPCG-like in containers, ep EP

exit status: 0 done, 1 something failed (standard error says what), 2 wrong usage, 3 runs are left"""


@dataclass(frozen=True, slots=True)
class Here:
    """What a command found here."""

    cluster: Cluster
    nodes: dict[str, Any]
    api: ApiServer | None


def register(subparsers: Any) -> None:
    """Add the command and its own sub-commands."""
    command = subparsers.add_parser(
        "bench",
        help="measure this cluster as the papers did",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    verbs = command.add_subparsers(title="commands", metavar="COMMAND", required=True)
    planning = verbs.add_parser("plan", help="show what would be run", description="Show what would be run.")
    _choices(planning)
    user_cluster.add_json(planning)
    planning.set_defaults(run=_plan)
    going = verbs.add_parser("run", help="run what is left of it", description="Run what is left of it.")
    _choices(going)
    going.add_argument("--limit", type=_minutes, default=float("inf"), metavar="MIN", help="start no run after this")
    going.set_defaults(run=_run)


def _choices(verb: Any) -> None:
    verb.add_argument("--tables", type=_tables, default=tuple(Table), metavar="T,...", help="which; all")
    verb.add_argument("--size", choices=SIZES, default="machine", help="of the problems; %(default)s")
    verb.add_argument("--rounds", type=_rounds, default=0, metavar="N", help="of each table; the size has its own")
    verb.add_argument(
        "--output", type=Path, metavar="FILE", help="where results are; ~/isthmus-bench/results-SIZE.json"
    )
    plain_kubernetes.add_options(verb)


def _tables(text: str) -> tuple[Table, ...]:
    try:
        return tuple(Table(word) for word in text.split(","))
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{error}; there are {', '.join(Table)}") from error


def _minutes(text: str) -> float:
    number = float(text)
    if not 0 < number < 1e6:
        raise argparse.ArgumentTypeError(f"{text} is no number of minutes")
    return number


def _rounds(text: str) -> int:
    number = int(text)
    if number < 0:
        raise argparse.ArgumentTypeError(f"{text} is no number of rounds")
    return number


def _plan(options: argparse.Namespace) -> None:
    with _explained():
        with beside(options, partial(print, file=sys.stderr)) as other:
            made = _made(options, _here(other))
        file = _file(options)
        known = results.read(file).results if file.exists() else ()
    done = {each.key for each in known if not each.error}
    left = [run for run in made.runs if run.key not in done]
    if options.json:
        header = {"schema": results.SCHEMA, "runs": len(made.runs), "left": len(left), "left_out": made.left_out}
        print(json.dumps({**header, "minutes": round(running.remaining_s(left, known) / 60, 1)}))
        return
    counted = Counter(run.launch.table for run in left)
    for table in options.tables:
        print(f"{table}: {counted[table]} runs")
    print(f"{len(left)} of {len(made.runs)} runs are left, about {running.remaining_s(left, known) / 60:.0f} minutes")
    _report_left_out(made, print)


def _run(options: argparse.Namespace) -> None:
    # As Ctrl-C does, so that the running job is cancelled.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    console = Console(stderr=True, highlight=False, soft_wrap=True)
    with _explained(), beside(options, console.print) as other:
        here = _here(other)
        if here.cluster.plain and here.cluster.plain.problem:
            raise CommandError(f"{here.cluster.plain.problem}, or leave out --plain-kubernetes")
        made = _made(options, here)
        _report_left_out(made, console.print)
        if not made.runs:
            raise CommandError("nothing can run here; `isthmus bench plan` says why")
        folder = Folder(Path.home() / "isthmus-bench")
        site = _site(folder, here)
        file = _file(options)
        context = about.whole(info.read().name, here.nodes, site.settings, site.image, here.cluster.plain)
        document = results.resume(file, options.size, context, made.left_out)
        try:
            session = _session(here, site, folder, file, console.print, other)
            document = session.go_on(made, document, options.limit * 60)
        except KeyboardInterrupt:
            raise CommandError("interrupted; the same command continues", 128 + signal.SIGINT) from None
    _finish(made, document, file)


def _made(options: argparse.Namespace, here: Here) -> Plan:
    return plan.make(options.tables, SIZES[options.size], here.cluster, options.rounds)


def _session(
    here: Here, site: Site, folder: Folder, file: Path, progress: Callable[[str], None], other: Beside | None
) -> Session:
    slurm = Slurm(site, folder.runs)
    kube = Kubernetes(here.api, site) if here.api else None
    # Beside a plain one it may be down just now.
    if kube and not other:
        kube.prepare()

    def platform(column: Column) -> Platform:
        return kube if kube and column.is_kubernetes else slurm

    if other and here.cluster.plain:
        probe = _probe(Column.POD if here.cluster.mpijobs else Column.MPIJOB)
        platform = Sides(other.turns, slurm, kube, other.kubernetes(site, here.cluster.plain), probe).platform
    return Session(platform, lambda document: results.write(document, file), progress)


def _probe(column: Column) -> Launch:
    size = SIZES["smoke"]
    return Launch(Table.FIGURE2, "probe", column, ("init",), 1, 1, memory_mib=size.memory_mib, minutes=size.minutes)


def _finish(made: Plan, document: Document, file: Path) -> None:
    planned = {run.key for run in made.runs}
    failed = [each for each in document.results if each.error and each.key in planned]
    left = planned - document.done
    shown = "".join(f"\n  {each.key}: {each.error.splitlines()[0]}" for each in failed[:5])
    print(file)
    if left - {each.key for each in failed}:
        why = f", {len(failed)} of them because they failed:{shown}" if failed else ""
        raise CommandError(f"{len(left)} runs are left; the same command continues{why}", LEFT)
    if failed:
        raise CommandError(f"{len(failed)} runs failed; the same command tries them again:{shown}")


def _report_left_out(made: Plan, progress: Callable[[str], None]) -> None:
    for reason, count in Counter(made.left_out.values()).items():
        cells = [cell for cell, why in made.left_out.items() if why == reason]
        progress(f"left out: {', '.join(cells[:3])}{f' and {count - 3} more' if count > 3 else ''}: {reason}")


def _file(options: argparse.Namespace) -> Path:
    return options.output or Folder(Path.home() / "isthmus-bench").results(options.size)


def _here(other: Beside | None) -> Here:
    known = offer()
    nodes = [node for node in known.nodes if node.state.rstrip("*+~#!%$@^-") in _TAKING]
    if not nodes:
        raise CommandError("no node accepts jobs; see `sinfo`")
    api, kubernetes = _kubernetes()
    smallest = (min(node.cpus for node in nodes), min(node.memory_mib for node in nodes))
    described = {"count": len(nodes), "cpus": smallest[0], "memory_mib": smallest[1]}
    mpijobs = _mpijobs(api) if api else ""
    cluster = Cluster(len(nodes), *smallest, kubernetes, mpijobs, _network())
    # It may be that this cluster is down while the other is up.
    return Here(replace(cluster, plain=other.look()) if other else cluster, described, api)


def _kubernetes() -> tuple[ApiServer | None, str]:
    """Return the user's API server, or why there is none."""
    try:
        return server(), ""
    except (CommandError, KubeError) as error:
        return None, str(error)


def _mpijobs(api: ApiServer) -> str:
    try:
        offered = workloads()
        if _MPIJOBS in offered and installing.state(api, offered[_MPIJOBS]).ready:
            return ""
        return "MPIJobs are not installed; run `isthmus workloads add mpi`"
    except (WorkloadError, KubeError) as error:
        return str(error)


def _network() -> str:
    try:
        return "" if user_cluster.here().network else "jobs have no private pod network on this cluster"
    except CommandError as error:
        return str(error)


def _site(folder: Folder, here: Here) -> Site:
    reference = preparing.images()[preparing.IMAGE]
    preparing.compile_programs(folder)
    with user_cluster.progress() as progress:
        image = pull(parse(reference), pulling.workspace(os.environ, Path.home(), None), progress)
    return Site(
        programs=str(folder.programs),
        image=reference,
        image_file=str(image.path),
        settings=about.mpi_settings(),
        node_cpus=here.cluster.cpus,
        has_network=not here.cluster.network,
    )


@contextmanager
def _explained() -> Iterator[None]:
    try:
        yield
    except (PreparingError, ResultsError, ImageError, SlurmError, TurnError) as error:
        raise CommandError(str(error)) from error
    except KubeError as error:
        raise CommandError(f"{error}; see `isthmus status`") from error
