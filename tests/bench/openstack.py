"""How long do a cluster's servers take in an OpenStack whose hypervisor is nova's fake one: made, looked at, removed?

    python -m tests.bench.openstack [--servers 20] [--rounds 1]

It starts the box of tests/site/test_openstack*.py, where none runs, and writes results/openstack.json. Beside the times
there is what the box's services and the deployer spent of the processors, by which a figure from a busy machine can be
judged. Its exit status says whether each goal was met.
"""

from __future__ import annotations

import argparse
import os
import re
import resource
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from isthmus.model.cloud import Kind
from tests.bench.results import save
from tests.support.clusters.openstack_site import Project, Site
from tests.support.clusters.playbooks import Result
from tests.support.servers import openstack as box

GOALS_S = {"create": 60, "second": 15, "teardown": 30}
# A line of progress, and what follows the last one.
STEP = re.compile(rf"^({'|'.join(Kind)}): \w+ |^TASK \[")
# Lines of one wave come together.
TOGETHER_S = 0.2


def steps(done: Result) -> dict[str, float]:
    """Return the seconds of each wave, by the kinds in it."""
    lines = zip(done.at_s, done.output.split("\n"), strict=False)
    marks = [(at, found[1]) for at, line in lines if (found := STEP.match(line))]
    spent: dict[str, float] = {}
    kinds: list[str] = []
    begun = 0.0
    for at, kind in marks:
        if kinds and at - begun > TOGETHER_S:
            spent[", ".join(kinds)] = round(at - begun, 1)
            kinds = []
        if kind:
            begun = begun if kinds else at
            kinds.append(kind)
    return spent


def processors(running: box.Box) -> Counter[str]:
    """Return the seconds of processor of each of the box's services, and of this process's children."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    found = Counter({"deployer": round(children.ru_utime + children.ru_stime)})
    for line in running.run("ps", "-e", "-o", "cputimes=,unit=").splitlines():
        seconds, _, unit = line.strip().partition(" ")
        found[unit.strip().removesuffix(".service")] += int(seconds)
    return found


def timed(site: Site, what: str, run: Callable[[], Result]) -> dict[str, Any]:
    """Run a playbook that must succeed, and take its figures."""
    before, begun = processors(site.box), time.monotonic()
    done = run()
    if done.rc:
        raise SystemExit(f"{what} failed; see results/logs/openstack_bench_{what}.log")
    found = {"seconds": round(time.monotonic() - begun, 1), "steps": steps(done), "changed": sorted(done.changed)}
    spent = processors(site.box) - before
    return {**found, "processor_s": {name: seconds for name, seconds in spent.most_common() if seconds}}


def builds(project: Project) -> list[list[float]]:
    """Return when each server was accepted and when it ran, in seconds after the first one was, as nova says."""
    servers = project.servers().values()
    times = [[datetime.fromisoformat(at).timestamp() for at in (s.created_at, f"{s.launched_at}Z")] for s in servers]
    begun = min(accepted for accepted, _ in times)
    return sorted([accepted - begun, ran - begun] for accepted, ran in times)


def measure(site: Site, count: int) -> dict[str, Any]:
    """Make servers, run again, remove them; the cloud is empty before and after."""
    project = Project(site.box)
    refuse_rest(project)
    # Besides the compute nodes there are a controller and a login node.
    site.write(count - 2)
    found: dict[str, Any] = {"load": [round(one, 1) for one in os.getloadavg()]}
    found["create"] = timed(site, "create", lambda: site.create("bench_create"))
    begun = time.monotonic()
    listed = site.inventory()["_meta"]["hostvars"]
    found["create"]["inventory_s"] = round(time.monotonic() - begun, 1)
    states = [server.status for server in project.servers().values()]
    if (len(listed), states) != (count, ["ACTIVE"] * count):
        raise SystemExit(f"{len(listed)} nodes are in the inventory, and servers are {Counter(states)}")
    found["create"]["servers_s"] = builds(project)
    found["second"] = timed(site, "second", lambda: site.create("bench_second"))
    if found["second"]["changed"]:
        raise SystemExit("the second run changed something; see results/logs/openstack_bench_second.log")
    found["teardown"] = timed(site, "teardown", lambda: site.play("bench_teardown", "playbooks/teardown.yml"))
    refuse_rest(project)
    return found


def refuse_rest(project: Project) -> None:
    """End where the project has anything."""
    there = {kind: names for kind, names in project.listing().items() if names}
    if there:
        raise SystemExit(f"the project has {there}; python -m tests.support.servers.openstack down")


def seconds(found: dict[str, Any], what: str) -> float:
    """Return what a goal is about: servers count once they are in the inventory."""
    return round(float(found[what]["seconds"] + found[what].get("inventory_s", 0)), 1)


def main() -> int:
    """Measure, print and save; the exit status says whether each goal was met in each round."""
    parser = argparse.ArgumentParser(description="Time a cluster's servers in an OpenStack in a container.")
    parser.add_argument("--servers", type=int, default=20, help="with the controller and a login node (default: 20)")
    parser.add_argument("--rounds", type=int, default=1, help="how often (default: 1)")
    arguments = parser.parse_args()
    ran = box.is_running()
    with tempfile.TemporaryDirectory() as folder:
        places = [Path(folder, name) for name in ("inventory", "state", "clouds")]
        for place in places:
            place.mkdir()
        try:
            site = Site(places[0], places[1], box.start(places[2]))
            rounds = [measure(site, arguments.servers) for _ in range(arguments.rounds)]
        finally:
            if not ran:
                box.stop()
    save("openstack", servers=arguments.servers, goals_s=GOALS_S, rounds=rounds)
    table = Table("", "goal s", *(f"load {found['load'][0]}" for found in rounds))
    for what, goal in GOALS_S.items():
        table.add_row(what, str(goal), *(str(seconds(found, what)) for found in rounds))
    Console().print(table)
    return int(any(seconds(found, what) > goal for found in rounds for what, goal in GOALS_S.items()))


if __name__ == "__main__":
    raise SystemExit(main())
