"""A server and a client that asks it ten times a second, both jobs of a user in a pod network: was it ever away?"""

from __future__ import annotations

import base64
import itertools
import json
from collections.abc import Sequence

from tests.support.clusters import jobs
from tests.support.clusters.cluster import Node
from tests.support.wait import wait

LONGEST_GAP_S = 5.0
NETWORK = "--mem=64 --pod-network"
_SERVE = "exec python3 -m http.server 8000 --directory /usr/share/doc/slurm-client\n"
_ASK = """
import sys, time, urllib.request
while True:
    try:
        urllib.request.urlopen(f"http://{sys.argv[1]}:8000/", timeout=2).read()
        print(time.time(), flush=True)
    except OSError:
        pass
    time.sleep(0.1)
"""


def write(login: Node, user: str, name: str, text: str) -> None:
    """Write a program of the user's, beside the others of this load."""
    login.run_as(user, f"echo {base64.b64encode(text.encode()).decode()} | base64 --decode >.asking-{name}")


def remove(login: Node, user: str) -> None:
    """Remove the programs."""
    login.run_as(user, "rm -f .asking-*")


def address(login: Node, user: str, job: str) -> str:
    """Return the address of a job of one node in its user's network."""

    def listed() -> list[str]:
        found = json.loads(login.run_as(user, "isthmus network list --json"))["jobs"]
        return [each["addresses"][0] for each in found if each["id"] == int(job) and all(each["addresses"])]

    return wait(listed)[0]


def begin(login: Node, controller: Node, user: str, nodes: Sequence[str]) -> dict[str, str]:
    """Start both on different nodes; return the ids of the jobs `server` and `client` once there are answers."""
    first, second = nodes
    write(login, user, "serve", _SERVE)
    write(login, user, "ask", _ASK)
    server = jobs.submit(login, user, f"{NETWORK} --nodelist={first}", "sh .asking-serve")
    jobs.wait_for_job(controller, server, "RUNNING")
    asks = f"python3 .asking-ask {address(login, user, server)}"
    client = jobs.submit(login, user, f"{NETWORK} --nodelist={second}", asks)
    jobs.wait_for_job(controller, client, "RUNNING")
    wait(lambda: jobs.written(login, user, client))
    return {"server": server, "client": client}


def gaps(login: Node, user: str, client: str) -> dict[str, float]:
    """Return the longest time without an answer until now, and the time of the whole, in seconds."""
    times = [float(line) for line in jobs.written(login, user, client).split()]
    return gaps_between([*times, float(login.output("date +%s.%N"))])


def gaps_between(times: Sequence[float]) -> dict[str, float]:
    """Return the longest time between two of these, and the time of the whole, in seconds."""
    longest = max(later - earlier for earlier, later in itertools.pairwise(times))
    return {"longest_gap_s": round(longest, 2), "whole_s": round(times[-1] - times[0], 2)}


def assert_ran_on(controller: Node, *ids: str) -> None:
    """Fail where a job does not run, or runs again."""
    for job in ids:
        shown = jobs.fields(controller.output(f"scontrol show job {job}"))
        assert (shown["JobState"], shown["Restarts"]) == ("RUNNING", "0"), f"job {job}"
