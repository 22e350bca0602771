"""Two users with pods on two nodes and one who looks on: where the network's attacks begin, and what they aim at."""

from __future__ import annotations

import base64
import json
import shlex
import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

from tests.support.clusters import jobs
from tests.support.clusters.cluster import ROOT, Cluster, Node, succeeded
from tests.support.wait import wait

AGENT = "/usr/local/lib/isthmus-test-ways.py"
PROBE = "/usr/local/lib/isthmus-test-serve.py"
PORT = 8080
Way = dict[str, Any]


@dataclass(frozen=True)
class Bed:
    """The bed; `near` and `far` are two compute nodes.

    Attributes:
        login: where users submit.
        near: the attacker's node.
        far: another.
        users: role (attacker, victim, other) -> login name.
        jobs: role -> job with a pod on both nodes.
        words: what stands in braces in a way -> what it is here.
    """

    login: Node
    near: Node
    far: Node
    users: dict[str, str]
    jobs: dict[str, str]
    words: dict[str, str]

    def on_host(self, ways: Sequence[Way], node: Node | None = None, role: str = "attacker") -> dict[str, str]:
        """Try ways as a user's processes on a node."""
        return self._reported(self.command(ways), lambda text: (node or self.near).run_as(self.users[role], text))

    def in_pod(self, ways: Sequence[Way], node: Node | None = None, role: str = "attacker") -> dict[str, str]:
        """Try ways in a user's pod on a node."""
        where = f"--overlap --jobid={self.jobs[role]} --nodelist={(node or self.near).name} --nodes=1 --ntasks=1"
        return self._reported(
            f"srun {where} --mem=20 {self.command(ways)}", lambda text: self.login.run_as(self.users[role], text)
        )

    def command(self, ways: Sequence[Way]) -> str:
        """Return the command that tries ways."""
        given = base64.b64encode(json.dumps([self.meant(way) for way in ways]).encode()).decode()
        return f"python3 {AGENT} {given}"

    def meant(self, reported: Any) -> Any:
        """Put in what stands in braces."""
        match reported:
            case str():
                return reported.format(**self.words)
            case list():
                return [self.meant(each) for each in reported]
            case dict():
                return {name: each if name == "name" else self.meant(each) for name, each in reported.items()}
        return reported

    def pod_frames(self, role: str) -> int:
        """Return how many frames came to a user's pod on the near node."""
        # Not by /sys, which is the host's wherever it is mounted.
        shown = self.near.output(f"nsenter --net=/run/netns/isthmus-{self.jobs[role]} grep eth0: /proc/net/dev")
        return int(shown.split()[2])

    @contextmanager
    def meanwhile(self, node: Node, way: Way, role: str = "attacker") -> Iterator[None]:
        """Keep a way going on a node, which ends by itself."""
        user, command = self.users[role], shlex.quote(self.command([way]))
        node.output(f"setsid --fork su - {user} -c {command} > /dev/null 2>&1 < /dev/null")
        wait(lambda: node.output(f"ss -Hltn 'sport = {way['port']}'"))
        yield

    @staticmethod
    def _reported(command: str, run: Any) -> dict[str, str]:
        found: dict[str, str] = json.loads(run(command).splitlines()[-1])
        return found


@contextmanager
def bed(cluster: Cluster, near: Node, far: Node, users: dict[str, str]) -> Iterator[Bed]:
    """Bring the programs, begin the jobs, and learn all addresses."""
    hosts = list(cluster.nodes.values())
    with ExitStack() as stack:
        for path, name in ((AGENT, "attacks/network.py"), (PROBE, "remote/probe.py")):
            text = (ROOT / "tests/support" / name).read_text()
            for node in hosts:
                node.output(f"cat > {path} <<'END'\n{text}\nEND")
                stack.callback(node.run, f"rm -f {path}")
        login = cluster.submit
        options = f"--pod-network --nodes=2 --ntasks-per-node=1 --nodelist={near.name},{far.name} --mem=70 --time=20"
        begun = {
            role: jobs.submit(login, user, options, f"srun --mem=40 --overlap python3 {PROBE} serve {PORT}")
            for role, user in users.items()
        }
        stack.callback(jobs.cancel, cluster.controller, *begun.values())
        for role, job in begun.items():
            jobs.wait_for_job(cluster.controller, job, "RUNNING")
            wait(partial(_ready, login, users[role], job), lambda count: count == 2)
        yield Bed(login, near, far, users, begun, _words(cluster, near, far, users, begun))


def _ready(login: Node, user: str, job: str) -> int:
    """Count the tasks of a job that said that they listen."""
    return jobs.written(login, user, job).count("ready")


def _words(cluster: Cluster, near: Node, far: Node, users: dict[str, str], begun: dict[str, str]) -> dict[str, str]:
    controller, known = cluster.controller, json.loads(near.output("isthmus network list --json"))
    networks = {each["user"]: each for each in known["users"]}
    pods = {str(each["id"]): dict(zip(each["nodes"], each["addresses"], strict=True)) for each in known["jobs"]}
    words = {
        "controller": controller.variables["base_address"],
        "login": cluster.submit.variables["base_address"],
        "near": near.variables["base_address"],
        "far": far.variables["base_address"],
        "uplink": near.output(f"ip route get {far.variables['base_address']} | grep -o 'dev [^ ]*' | cut -d' ' -f2"),
        "deployer": deployer(controller),
        "domain": controller.variables["name"],
        "nobody": networks[users["attacker"]]["blocks"][0].rpartition(".")[0] + ".2",
    }
    for role, user in users.items():
        vni = networks[user]["vni"]
        words |= {f"{role}_device": f"il{vni}", f"{role}_vxlan": f"ix{vni}", f"{role}_veth": f"iv{begun[role]}"}
        words |= {f"{role}_job": begun[role], f"{role}_name": user}
        words[f"{role}_handle"] = f"/run/netns/isthmus-{begun[role]}"
        for place, node in (("near", near), ("far", far)):
            words[f"{role}_pod_{place}"] = pods[begun[role]][node.name]
            shown = node.output(f"ip -4 -o address show dev il{vni}")
            words[f"{role}_leg_{place}"] = shown.split()[3].partition("/")[0]
    return words


def deployer(controller: Node) -> str:
    """Return the address by which this machine is seen by the site: to pods it is outside."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect((controller.variables["address"], controller.variables["port"]))
        return str(probe.getsockname()[0])


class Outside:
    """A server on this machine that keeps from which ports it is asked."""

    def __init__(self) -> None:
        self.seen: list[int] = []
        self._server = socket.create_server(("", 0))
        self.port = self._server.getsockname()[1]
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                connection, peer = self._server.accept()
            except OSError:
                return
            with connection:
                self.seen.append(peer[1])

    def close(self) -> None:
        """End it."""
        self._server.close()


def root_reads(node: Node, path: str) -> int:
    """Return a number of the kernel's."""
    return int(succeeded(node.run(f"cat {path}")))
