"""`isthmus workloads`: operators of common workloads, such as the MPI Operator, in the user's own Kubernetes."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any

from rich.console import Console
from rich.table import Table

from isthmus.cli import user_cluster
from isthmus.cli.errors import CommandError
from isthmus.clients.kube.apiserver import ApiServer
from isthmus.clients.kube.errors import KubeError
from isthmus.controlplane.commands import context as cluster
from isthmus.controlplane.network import NetworkError
from isthmus.workloads import installing, offer
from isthmus.workloads.installing import State
from isthmus.workloads.offer import Workload, WorkloadError

SCHEMA = 1
_ANSWER_S = 30
DESCRIPTION = """Add operators to your own Kubernetes, or remove them; without a command, list what the site offers.

An operator's controller is a pod in your cluster, and so a Slurm job of yours, with one CPU and little memory, as long
as the workload is installed. The pods that it creates are jobs of yours too."""
EPILOG = """examples:
  isthmus workloads                        the site's offer, and what your cluster has
  isthmus workloads add mpi                MPIJobs: the MPI Operator; again after an upgrade of the site
  isthmus workloads status mpi             its version, whether it is ready, your MPIJobs, examples
  isthmus workloads remove mpi             the operator, and all MPIJobs that have ended
  kubectl apply -f $(isthmus workloads status mpi --json | jq -r .workloads[0].examples[0])

By hand: kubectl apply -f MANIFEST, or helm install mpi-operator CHART --namespace mpi-operator --create-namespace;
`status --json` has both paths.

exit status: 0 done, 1 it could not be done (standard error says why), 2 wrong usage"""


def register(subparsers: Any) -> None:
    """Add the command and its own sub-commands."""
    command = subparsers.add_parser(
        "workloads",
        help="add operators, such as MPI's, to your Kubernetes",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    user_cluster.add_json(command)
    command.set_defaults(run=_list)
    verbs = command.add_subparsers(title="commands", metavar="COMMAND")
    _verb(verbs, "list", "show what the site offers, and what your cluster has", _list)
    adding = _verb(verbs, "add", "add a workload, or upgrade it to the site's version", _add)
    _name(adding)
    _timeout(adding, 180, "until it is ready; 0 not to wait")
    looking = _verb(
        verbs, "status", "show a workload in your cluster, or all; exit status 1 if one isn't ready", _status
    )
    looking.add_argument("name", metavar="NAME", nargs="?", help="as the list has it")
    removal = _verb(verbs, "remove", "remove a workload from your cluster", _remove)
    _name(removal)
    removal.add_argument("--force", action="store_true", help="also your objects of it that have not ended")
    _timeout(removal, 120, "until all of it is gone")


def _verb(verbs: Any, name: str, help_text: str, run: Any) -> Any:
    verb = verbs.add_parser(name, help=help_text, description=f"{help_text[0].upper()}{help_text[1:]}.")
    user_cluster.add_json(verb)
    verb.set_defaults(run=run)
    return verb


def _name(verb: Any) -> None:
    verb.add_argument("name", metavar="NAME", help="as `isthmus workloads` lists it")


def _timeout(verb: Any, usual_s: int, until: str) -> None:
    verb.add_argument("--timeout", type=_seconds, default=usual_s, metavar="S", help=f"seconds {until}; {usual_s}")


def _list(options: argparse.Namespace) -> None:
    with _explained():
        offered = offer.read()
    states, down = _states(offered)
    if options.json:
        print(_json(offered, states, down))
        return
    if not offered:
        print("the site offers no workloads")
        return
    table = Table(box=None, header_style="")
    for title in ("NAME", "VERSION", "WORKLOAD", "YOUR CLUSTER"):
        table.add_column(title)
    for name, workload in offered.items():
        table.add_row(name, workload.version, workload.title, down or _words(workload, states[name]))
    Console().print(table)


def _add(options: argparse.Namespace) -> None:
    with _explained(), user_cluster.progress() as progress:
        workload = offer.pick(offer.read(), options.name)
        now = installing.add(server(), workload, progress, options.timeout)
    if options.json:
        print(_json({workload.name: workload}, {workload.name: now}))
        return
    print(f"{workload.name} {now.version} is {'ready' if now.ready else 'added'}")
    for example in workload.examples:
        print(f"  kubectl apply -f {example}")


def _status(options: argparse.Namespace) -> None:
    with _explained():
        offered = offer.read()
        chosen = {options.name: offer.pick(offered, options.name)} if options.name else offered
        api = server()
        states = {name: installing.state(api, workload) for name, workload in chosen.items()}
    if options.json:
        print(_json(chosen, states))
    else:
        for name, workload in chosen.items():
            Console().print(_table(workload, states[name]))
    lacking = [name for name, now in states.items() if not now.ready and (now.added or options.name)]
    if lacking:
        raise CommandError("; ".join(f"{name}: {_words(chosen[name], states[name])}" for name in lacking))


def _remove(options: argparse.Namespace) -> None:
    with _explained(), user_cluster.progress() as progress:
        workload = offer.pick(offer.read(), options.name)
        was_there = installing.remove(server(), workload, progress, options.timeout, force=options.force)
    if options.json:
        print(json.dumps({"schema": SCHEMA, "name": workload.name, "removed": was_there}))
    else:
        print(f"{workload.name} {'is removed' if was_there else 'was not there'}")


def server() -> ApiServer:
    """Return the user's API server.

    Raises:
        CommandError: it is not running.
    """
    here = user_cluster.here()
    if here.network is not None:
        try:
            here.network.join()
        except NetworkError as error:
            raise CommandError(str(error)) from error
    known = cluster.read_json(here.home.cluster.state)
    if known is None:
        raise CommandError("your Kubernetes is down; start it with `isthmus up`")
    return cluster.api(here.home, str(known["server"]), _ANSWER_S)


def _states(offered: Mapping[str, Workload]) -> tuple[dict[str, State], str]:
    """Return the state of all; without a cluster only the offer."""
    try:
        api = server()
        return {name: installing.state(api, workload) for name, workload in offered.items()}, ""
    except (CommandError, KubeError):
        return dict.fromkeys(offered, State()), "down"


@contextmanager
def _explained() -> Iterator[None]:
    try:
        yield
    except WorkloadError as error:
        raise CommandError(str(error)) from error
    except KubeError as error:
        remedy = "see `isthmus status`" if error.status is None else "see `isthmus logs kube-apiserver`"
        raise CommandError(f"{error}; {remedy}") from error


def _words(workload: Workload, now: State) -> str:
    if not now.added:
        return "not added"
    newer = f", the site has {workload.version}" if now.version != workload.version else ""
    ready = "ready" if now.ready else f"not ready ({now.problem or 'its pod has not started yet'})"
    return f"{now.version} {ready}{newer}"


def _table(workload: Workload, now: State) -> Table:
    table = Table(show_header=False, box=None)
    table.add_column(no_wrap=True)
    # Unwrapped, as paths are copied.
    table.add_column(overflow="fold")
    table.add_row(workload.name, f"{workload.title}, {workload.version}, {workload.licence}")
    table.add_row("in your cluster", _words(workload, now))
    table.add_row(
        f"your {workload.kind}s", ", ".join(f"{count} {name}" for name, count in now.objects.items()) or "none"
    )
    table.add_row("manifest", str(workload.manifest))
    table.add_row("chart", str(workload.chart))
    table.add_row("examples", "\n".join(map(str, workload.examples)))
    table.add_row("images", "\n".join(workload.images.values()))
    return table


def _json(offered: Mapping[str, Workload], states: Mapping[str, State], down: str = "") -> str:
    rows = [
        {
            **asdict(workload),
            "manifest": workload.manifest,
            "chart": workload.chart,
            "examples": workload.examples,
            "cluster": asdict(states[name]),
        }
        for name, workload in offered.items()
    ]
    return json.dumps({"schema": SCHEMA, "up": not down, "workloads": rows}, default=str)


def _seconds(text: str) -> float:
    number = float(text)
    if not 0 <= number < 1e6:
        raise ValueError(text)
    return number
