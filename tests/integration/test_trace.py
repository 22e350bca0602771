"""What a trace says of each pair is what really happens to its packets."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from ipaddress import IPv4Network

import pytest

from isthmus.network.node.rules import Protocol
from isthmus.network.trace.points import Finder, visible
from isthmus.network.trace.way import Probe, Verdict, trace, verdict
from tests.support.networks.namespaces import TCP, UDP, needs_root
from tests.support.networks.pod_networks import (
    ADMIN,
    ALICE,
    ALICES,
    ALLOWED,
    BOB,
    DENIED,
    DNS,
    METADATA,
    OPEN,
    SERVED,
    SETTINGS,
    SLURM,
    PodNetworks,
)

pytestmark = needs_root
SERVICES = IPv4Network("10.96.0.0/16")
UIDS = {"root": 0, "alice": ALICE, "bob": BOB, "admin": ADMIN}
PMIX = 45678
SOURCES = ["1:n1", "1:n2", "2:n1", "alice@n1", "bob@n1", "admin@n1", "root@n2", "alice@n3", "outside"]
TARGETS = {
    "pods": (["1:n1", "1:n2", "2:n1", "2:n2"], [SERVED]),
    "legs": (["10.128.1.1", "10.128.1.2", "10.128.1.3", "10.128.2.1"], [SERVED, DNS, PMIX]),
    "hosts": (["n1", "n2", "n3"], [SERVED, SLURM, ALLOWED]),
    "outside": ([str(each) for each in (OPEN, DENIED, ALICES, METADATA)], [SERVED]),
}
KINDS = {Protocol.TCP: TCP, Protocol.UDP: UDP}


@pytest.fixture(scope="module")
def world():
    with ExitStack() as stack:
        made = PodNetworks.served(stack, filtered=True)
        for name, place in made.nodes.places.items():
            # Everywhere a listener on all addresses, and on legs one of its very own.
            for port in (SLURM, ALLOWED):
                for kind in KINDS.values():
                    stack.enter_context(place.serve("", port, kind))
            for uid in (ALICE, BOB):
                leg = made.state.users[uid].legs.get(name)
                for port in (DNS, PMIX) if leg else ():
                    for kind in KINDS.values():
                        stack.enter_context(place.serve(leg, port, kind))
        yield made


def reported(world, source, target, probe, asker=None):
    finder = Finder(visible(world.state, asker), SETTINGS, "cl", asker, UIDS.__getitem__, SERVICES)
    steps = trace(finder.state, SETTINGS, finder.source(source), finder.target(target), probe)
    return verdict(steps), steps


def happens(world, source, target, probe, wait_s):
    """Whether a server's answer comes back in time."""
    who, at, where = source.rpartition("@")
    job, _, node = source.partition(":")
    place = world.nodes.places[where] if at or where == "outside" else world.pods[node, int(job)]
    address = Finder(world.state, SETTINGS, "cl", None, UIDS.__getitem__, SERVICES).target(target).address
    user = UIDS[who] if at else None
    if probe.protocol is Protocol.ICMP:
        return place.pings(address, wait_s)
    return bool(place.asks(address, probe.port, KINDS[probe.protocol], user, wait_s=wait_s))


def compared(world, source, targets, probe):
    """Return the pairs of which a trace says what does not happen."""
    wrong = []
    for target in targets:
        said, steps = reported(world, source, target, probe)
        # It depends on what the listener is bound to: PMIX's is bound to the leg alone.
        expected = {Verdict.PASSES: True, Verdict.DEPENDS: probe.port == PMIX}.get(said, False)
        # What is refused may get lost without a word; what passes is waited for on a busy machine too.
        really = happens(world, source, target, probe, 15 if expected else 0.3)
        if really != expected:
            wrong.append(f"{source} -> {target} {probe}: {said}, really {really}: {steps[-1]}")
    return wrong


@pytest.mark.parametrize("kind", TARGETS)
@pytest.mark.parametrize("protocol", KINDS)
def test_verdict_is_what_happens(world, kind, protocol):
    targets, ports = TARGETS[kind]
    # Between the machine outside and itself there is nothing of the pod networks.
    sources = [source for source in SOURCES if (source, kind) != ("outside", "outside")]
    cases = [(source, Probe(protocol, port)) for source in sources for port in ports]
    with ThreadPoolExecutor() as pool:
        wrong = list(pool.map(lambda case: compared(world, case[0], targets, case[1]), cases))
    assert [each for some in wrong for each in some] == []


@pytest.mark.parametrize("kind", ["pods", "legs", "hosts"])
def test_verdict_on_a_ping_is_what_happens(world, kind):
    targets, _ = TARGETS[kind]
    for source in ("1:n1", "2:n1"):
        assert compared(world, source, targets, Probe(Protocol.ICMP)) == []


def test_user_is_reported_the_same_about_his_own(world):
    for target in (*TARGETS["pods"][0][:2], *TARGETS["hosts"][0], str(OPEN), str(DENIED)):
        for source in ("1:n1", "alice@n1"):
            probe = Probe(Protocol.TCP, SERVED)
            assert reported(world, source, target, probe, ALICE) == reported(world, source, target, probe)


def test_user_is_reported_the_same_of_others_whether_they_are_there_or_not(world):
    """Bob's pod, his leg, and an address that nobody has."""
    answers = []
    for target in ("10.128.2.101", "10.128.2.1", "10.128.3.7"):
        said, steps = reported(world, "1:n1", target, Probe(Protocol.TCP, SERVED), ALICE)
        answers.append((said, [(step.node, step.check, step.by) for step in steps]))
    assert answers[0] == answers[1] == answers[2]
    assert answers[0][0] is Verdict.REFUSED
