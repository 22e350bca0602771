"""An ordinary user against another's pods, and against the hosts: by pod, by host process, by port and by flood."""

import json
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import partial

import pytest

from tests.attack.network_ways import (
    CONTROL_PLANE,
    DNS,
    HOST,
    HOSTS_PORTS,
    LEGS,
    MARKS,
    METADATA,
    NAMESPACES,
    POD,
    PRIVILEGED,
    PRIVILEGED_CONTROLS,
    RIGHTS,
    SQUATTER,
    SQUATTERS_S,
    TRAPPED,
    VXLAN,
)
from tests.support.attacks import network_bed
from tests.support.clusters.user_clusters import UserCluster
from tests.support.wait import wait

COUNT = "/proc/sys/net/netfilter/nf_conntrack_count"
# network_connections_max of the test bed, and what others have there.
MOST, OTHERS = 16384, 2000
FLOOD = 24000
# network_dns_rate of the test bed.
DNS_RATE = 1000


@pytest.fixture(scope="module")
def bed(cluster, two_computes, attacker, victim, user):
    """Pods of three users on two nodes."""
    users = {"attacker": attacker, "victim": victim, "other": user}
    with network_bed.bed(cluster, *two_computes, users) as made:
        yield made


@pytest.fixture(scope="module")
def by_host(bed):
    """What came of each way that a host process tried."""
    return bed.on_host([*HOST, *VXLAN, *MARKS, *NAMESPACES])


@pytest.fixture(scope="module")
def by_pod(bed):
    """What came of each way that a pod tried."""
    return bed.in_pod([*POD, *HOSTS_PORTS, *METADATA, *RIGHTS, *DNS, *PRIVILEGED, *PRIVILEGED_CONTROLS])


def blocked(reported, way):
    assert reported[way["name"]].startswith("blocked"), reported[way["name"]]


def each(ways):
    return pytest.mark.parametrize("way", ways, ids=lambda way: way["name"])


@pytest.mark.attack("S4")
@each(PRIVILEGED)
def test_privileged_source_port(by_pod, way):
    """A pod asks hosts, who would trust root's ports, from a port below 1024."""
    blocked(by_pod, way)
    control = PRIVILEGED_CONTROLS[PRIVILEGED.index(way) % len(PRIVILEGED_CONTROLS)]
    assert by_pod[control["name"]].startswith("open"), "the very port is reached from another"


@pytest.mark.attack("S4")
@pytest.mark.parametrize("port", [1, 700, 1023])
def test_privileged_source_port_outside(bed, port):
    """A pod asks a machine outside from a port below 1024."""
    with closing(network_bed.Outside()) as outside:
        way = {"name": "out", "kind": "tcp", "address": "{deployer}", "port": outside.port, "source_port": port}
        reported = bed.in_pod([way])
    assert all(seen >= 1024 for seen in outside.seen), outside.seen
    assert bool(outside.seen) is reported["out"].startswith("open")


@pytest.mark.attack("S14")
@each(TRAPPED)
def test_listener_on_anothers_leg(trapped, way):
    """A host process listens on another user's leg, and that user's pod calls there."""
    blocked(trapped[way["name"].partition(" ")[0]], way)


@pytest.fixture(scope="module")
def trapped(bed):
    """What the victim's pods got from where the attacker listens."""
    with bed.meanwhile(bed.near, SQUATTER), bed.meanwhile(bed.near, SQUATTER | {"address": "", "port": 23457}):
        begun = time.monotonic()
        reported = {node.name: bed.in_pod(TRAPPED, node, "victim") for node in (bed.near, bed.far)}
        assert time.monotonic() - begun < SQUATTERS_S - 1, "the trap was gone before the victim came"
    return {"near": reported[bed.near.name], "far": reported[bed.far.name]}


@pytest.mark.attack("S15")
@each(LEGS)
def test_frames_in_anothers_network(bed, way):
    """A host process sends to addresses of its own network by another user's interface."""
    before = bed.pod_frames("victim")
    bed.on_host([way])
    # Frames of others are few; the attack's would be one for each address.
    assert bed.pod_frames("victim") - before < 10


@pytest.mark.attack("-")
@each(HOST)
def test_host_process_to_anothers_network(by_host, way):
    """A host process asks another user's pods and legs, by each interface and from his leg."""
    blocked(by_host, way)


@pytest.mark.attack("-")
@each(VXLAN)
def test_forged_vxlan(by_host, way):
    """A host process sends packets that look like a member's VXLAN."""
    blocked(by_host, way)


@pytest.mark.attack("-")
@each(MARKS)
def test_marks_and_raw_sockets(by_host, way):
    """A host process marks packets as the kernel's own, or makes frames by hand."""
    blocked(by_host, way)


@pytest.mark.attack("-")
@each(NAMESPACES)
def test_namespace_of_anothers_pod(by_host, way):
    """A host process enters another user's pod, or changes the way there."""
    blocked(by_host, way)


@pytest.mark.attack("-")
@each(POD)
def test_pod_to_others_networks(by_pod, way):
    """A pod asks pods and legs of two other users on two nodes."""
    blocked(by_pod, way)


@pytest.mark.attack("-")
@each(HOSTS_PORTS)
def test_pod_to_ports_of_hosts(by_pod, way):
    """A pod asks hosts for what is none of Slurm's ports, and its own leg."""
    blocked(by_pod, way)


@pytest.mark.attack("-")
@each(METADATA)
def test_pod_to_metadata_and_ipv6(by_pod, way):
    """A pod asks a cloud's metadata service, and by IPv6."""
    blocked(by_pod, way)


@pytest.mark.attack("-")
@each(RIGHTS)
def test_rights_over_a_pods_network(by_pod, way):
    """A pod's user changes its network, or sends what is not the pod's."""
    blocked(by_pod, way)


@pytest.mark.attack("-")
@each(DNS)
def test_names_of_others(by_pod, way):
    """A pod resolves names of another user, at its own DNS and at the other's."""
    blocked(by_pod, way)


@pytest.fixture(scope="module")
def by_control_plane(bed, nodes, login, victim):
    """What came of each way to the victim's control plane, by place; and of its owner's own."""
    cluster = UserCluster(login, victim)
    was_up = cluster.status()["job"]
    if not was_up:
        cluster.up()
    job = cluster.job()
    listed = json.loads(login.output("isthmus network list --json"))["jobs"]
    bed.words["api"] = next(each["addresses"][0] for each in listed if each["id"] == int(job["id"]))
    try:
        return {
            "login": bed.on_host(CONTROL_PLANE, login),
            "its node": bed.on_host(CONTROL_PLANE, nodes[job["node"]]),
            "pod": bed.in_pod(CONTROL_PLANE),
            "owner": bed.on_host(CONTROL_PLANE, login, "victim"),
        }
    finally:
        if not was_up:
            cluster.down()


@pytest.mark.attack("-")
@pytest.mark.full
@pytest.mark.parametrize("place", ["login", "its node", "pod"])
@each(CONTROL_PLANE)
def test_control_plane_of_another(by_control_plane, place, way):
    """Another user's control plane is asked from login, its own node and a pod."""
    blocked(by_control_plane[place], way)
    assert by_control_plane["owner"][CONTROL_PLANE[0]["name"]].startswith("open"), "it was there to be reached"


@pytest.mark.attack("S6")
@pytest.mark.full
@pytest.mark.parametrize("place", ["pod", "host"])
def test_flood_of_connections(bed, place):
    """A user's pod, or host process, fills the kernel's table of connections."""
    # Nobody has the last address of the hosts' network; of the host's own loopback nothing leaves it.
    target = "127.0.0.9" if place == "host" else bed.words["near"].rpartition(".")[0] + ".250"
    way = {"name": "flood", "kind": "flood", "address": target, "count": FLOOD}
    count = partial(network_bed.root_reads, bed.near, COUNT)
    before = count()
    (bed.on_host if place == "host" else bed.in_pod)([way])
    assert count() - before < MOST + OTHERS
    asked = {"name": "asks", "kind": "tcp", "address": "{controller}", "port": 6817}
    for ask in (bed.on_host, bed.in_pod):
        assert ask([asked], role="victim")["asks"].startswith("open")


@pytest.mark.attack("-")
@pytest.mark.full
def test_flood_of_questions(bed):
    """A pod floods its node's DNS while another user's pod asks it."""
    flood = {"name": "flood", "kind": "barrage", "address": "{attacker_leg_near}", "seconds": 15}
    ask = {"name": "ask", "kind": "questions", "server": "{victim_leg_near}", "count": 100}
    ask |= {"question": "{victim_job}.{victim_name}.{domain}"}
    # A flood of connections uses up the attacker's own share of entries, until they time out.
    wait(lambda: network_bed.root_reads(bed.near, COUNT), lambda entries: entries < OTHERS)
    with ThreadPoolExecutor() as pool:
        flooding = pool.submit(bed.in_pod, [flood])
        time.sleep(2)
        answered = bed.in_pod([ask], role="victim")["ask"]
        flooded = flooding.result()["flood"]
    assert answered == "open: 100 of 100 answered"
    sent, reported = map(int, flooded.removeprefix("open: ").split())
    # It asked for more than its share, and got no more than that.
    assert 2 * reported < sent
    assert 0 < reported <= DNS_RATE * (flood["seconds"] + 2)
