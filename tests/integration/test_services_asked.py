"""From a supervisor of the job's user by the daemon's socket to packets: all of the way but the kubelet's part."""

import sys
from contextlib import ExitStack
from functools import partial
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread
from types import SimpleNamespace

import pytest

import isthmus
from isthmus.clients import nftables
from isthmus.model.services import rows
from isthmus.network.api.client import ask
from isthmus.network.api.limits import Accounts
from isthmus.network.api.messages import Trace
from isthmus.network.api.operations import Dependencies, Operations
from isthmus.network.api.server import UsersServer
from isthmus.network.node.plugin import Watcher
from isthmus.network.services import rules as service_rules
from isthmus.network.services.apply import PodServices
from tests.support.networks.namespaces import TCP, needs_root
from tests.support.networks.pod_networks import ALICE, BOB, SETTINGS, PodNetworks
from tests.support.pods.services import answering, place

pytestmark = needs_root
WEB = "10.96.0.9"
SUPERVISOR = """
import asyncio, json, sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from isthmus.supervisor.services import Services

async def main():
    services = Services(sys.argv[3], print, Path(sys.argv[2]))
    services.take({"whole": True, "set": json.loads(sys.argv[4]), "drop": []})
    await services.applied(15)
    await services.end()

asyncio.run(main())
"""


@pytest.fixture(scope="module")
def world():
    with ExitStack() as stack:
        made = PodNetworks.of(stack)
        there = made.pod_address("n2", 1)
        stack.enter_context(made.pods["n2", 1].serve("", 8080, TCP, str(there).encode()))
        yield made


@pytest.fixture(scope="module")
def socket(world):
    """The daemon's of n1, of which only what Services need is there."""
    view = SimpleNamespace(snapshot=SimpleNamespace(state=world.state))
    converger = SimpleNamespace(last=SimpleNamespace(plan=world.plan("n1"), errors={}))
    services = PodServices(IPv4Network("10.96.0.0/16"))
    operations = Operations(
        Dependencies("n1", None, view, converger, {}, SETTINGS, "cl", services, Watcher(Path("/nonexistent")))
    )
    node = world.nodes.places["n1"]
    with TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        path = Path(folder, "networkd.sock")
        accounts = Accounts(lambda uid: None)
        answer = partial(node.do, operations.answer)
        with UsersServer(path, answer, operations.admit, accounts) as server:
            for loop in (server.serve_forever, server.own.serve_forever):
                Thread(target=loop, daemon=True).start()
            yield path
            server.shutdown()


@pytest.fixture
def pod(world):
    made = world.pods["n1", 1]
    yield made
    made.do(nftables.apply, service_rules.removal())


@pytest.fixture
def supervise(pod, socket):
    """Have Services brought by a supervisor in the pod; return what it says of itself."""

    def call(table, user=ALICE, job=1):
        code, source = SUPERVISOR, str(Path(isthmus.__file__).parents[1])
        reported = str(rows(table)).replace("'", '"')
        return pod.run(sys.executable, "-ISc", code, source, str(socket), str(job), reported, user=user).stdout.strip()

    return call


def test_services_of_the_jobs_user_are_reached(world, pod, supervise):
    there = world.pod_address("n2", 1)
    assert pod.refused(WEB, 80)
    assert supervise({place(WEB): answering(f"{there}:8080")}) == ""
    assert pod.asks(IPv4Address(WEB), 80) == str(there)
    assert supervise({}) == ""
    assert pod.refused(WEB, 80)


def test_another_user_changes_nothing(world, pod, supervise):
    there = world.pod_address("n2", 1)
    supervise({place(WEB): answering(f"{there}:8080")})
    assert "job 1 is not yours" in supervise({}, user=BOB)
    assert pod.asks(IPv4Address(WEB), 80) == str(there)


def test_address_that_is_no_services_is_refused(pod, supervise):
    assert "is no address of a Service" in supervise({place("192.0.2.1"): answering("10.64.0.3:8080")})
    assert service_rules.TABLE not in pod.run("nft", "list", "tables").stdout


@pytest.mark.parametrize(
    ("source", "port", "wanted", "by"),
    [
        ("1", 80, "passes", f"{WEB} tcp 80 is turned to"),
        ("1", 81, "refused", "has endpoints for tcp 80 alone"),
        ("1:n2", 80, "depends", "on n2, `isthmus network trace` shows where to"),
        ("n1", 80, "missing", "within pods alone"),
    ],
)
def test_trace_reports_what_the_rules_in_the_pod_do(world, supervise, socket, source, port, wanted, by):
    supervise({place(WEB): answering(f"{world.pod_address('n2', 1)}:8080")})
    reported = ask(Trace(source, WEB, port=port), socket)
    assert reported["verdict"] == wanted
    assert by in reported["steps"][0]["by"]


def test_trace_from_a_pod_without_services_leads_outside(pod, socket):
    reported = ask(Trace("1", WEB, port=80), socket)
    assert "an address as any other" in reported["steps"][0]["by"]
    assert reported["steps"][-1]["check"] == "from_pods"
