"""A user attacks a node's network daemon: its socket, its limits, what it trusts of other processes."""

from __future__ import annotations

import base64
import json
import random
import zlib

import pytest

from tests.support.clusters import jobs
from tests.support.clusters.cluster import ROOT
from tests.support.wait import wait
from tests.unit.network.test_protocol_fuzz import changed, deep, flipped, random_bytes

PLACE = "/usr/local/lib/isthmus-test-daemon-attacks.py"
ATTACK = f"python3 {PLACE}"
PEER_PLACE = "/usr/local/lib/isthmus-test-daemon-peers.py"
PEER = f"python3 {PEER_PLACE}"
IN_NAMESPACE = f"unshare --user --map-root-user --map-auto {ATTACK}"
CONNECTIONS_MAX = 16
# Of a user in /etc/subuid, less those that unshare --map-auto leaves out.
SUBORDINATE = 65_000
# network_connections_max of the test bed, and what others have there.
CONNECTIONS_KEPT = 16_384 + 8_000
UNKNOWN = 4294967000
HIDDEN = "hidden-service"


@pytest.fixture(scope="module")
def node(two_computes):
    """A compute node with the attack programs."""
    chosen = two_computes[0]
    for place, name in ((PLACE, "daemon.py"), (PEER_PLACE, "daemon_peers.py")):
        source = (ROOT / "tests/support/attacks" / name).read_text()
        chosen.output(f"cat > {place} <<'END'\n{source}\nEND")
    yield chosen
    chosen.output(f"rm -f {PLACE} {PEER_PLACE}")


@pytest.fixture(scope="module")
def victims_job(login, controller, victim, node):
    """A job of the victim's with a pod on the node, and an address that is kept."""
    login.run_as(victim, f"isthmus network reserve {HIDDEN}")
    try:
        with jobs.running(login, controller, victim, f"--pod-network --nodelist={node.name} --mem=50") as job:
            wait(lambda: f'"id": {job}' in node.output("isthmus network list --json"))
            yield int(job)
    finally:
        login.run_as(victim, f"isthmus network unreserve {HIDDEN}")


def ask(node, user, lines, verb="ask"):
    """Send each line as a user; return the replies."""
    given = [base64.b64encode(zlib.compress(each)).decode() for each in lines]
    reported = []
    for begin in range(0, len(given), 100):
        some = "\n".join(given[begin : begin + 100])
        reported += node.run_as(user, f"{ATTACK} {verb} <<'END'\n{some}\nEND").splitlines()
    return reported


def request(op, **fields):
    return json.dumps({"version": 1, "op": op, **fields}).encode() + b"\n"


def pid(node):
    return node.output("systemctl show --property MainPID --value isthmus-networkd")


RIGHTS = {
    "prepare": ("job_prepare", {"uid": 0, "user": "root", "name": "x", "nodes": "{node}", "driver": "private"}),
    "release": ("job_release", {}),
    "get": ("job_get", {}),
    "services": ("job_services", {"services": []}),
    "services with rows": ("job_services", {"services": [["10.96.0.9", "tcp", 80, 0, ["10.64.0.9:80"]]]}),
    "job as text": ("job_get", {"job": "{job}"}),
    "job as list": ("job_get", {"job": [1]}),
    "job negative": ("job_get", {"job": -1}),
    "job true": ("job_get", {"job": True}),
    "uid beside the job": ("job_get", {"uid": 0}),
    "lease of another": ("lease_take", {"job": ..., "uid": "{uid}"}),
    "lease of root": ("lease_take", {"job": ..., "uid": 0}),
    "lease dropped": ("lease_drop", {"job": ..., "uid": "{uid}"}),
    "reserve for another": ("reserve", {"job": ..., "uid": "{uid}", "name": "x"}),
    "unreserve of another": ("unreserve", {"job": ..., "uid": "{uid}", "name": HIDDEN}),
    "reserve a path": ("reserve", {"job": ..., "name": "../../users/0"}),
    "reserve a newline": ("reserve", {"job": ..., "name": "x\nroot"}),
    "reserve rules": ("reserve", {"job": ..., "name": "x; flush ruleset"}),
    "reserve NUL": ("reserve", {"job": ..., "name": "x\0"}),
    "reserve long": ("reserve", {"job": ..., "name": "x" * 3000}),
    "forget": ("node_forget", {"job": ..., "node": "{node}"}),
    "forget a path": ("node_forget", {"job": ..., "node": "../jobs/1"}),
    "trace another's pod": ("trace", {"job": ..., "source": "{job}", "target": "outside"}),
    "trace to another's pod": ("trace", {"job": ..., "source": "outside", "target": "{job}"}),
    "trace rules": ("trace", {"job": ..., "source": "x\n{", "target": "outside"}),
    "version": ("status", {"job": ..., "version": 2}),
    "unknown op": ("exec", {}),
}


@pytest.mark.attack("S5")
@pytest.mark.parametrize("way", [*RIGHTS, "op twice"])
def test_rights_by_the_socket(way, node, attacker, victim, victims_job):
    """The daemon's socket as another user: uid, job, lease, reservation, Services, types."""
    if way == "op twice":
        line = b'{"version":1,"op":"status","op":"job_release","job":%d}\n' % victims_job
    else:
        op, given = RIGHTS[way]
        known = {"{job}": victims_job, "{uid}": int(node.output(f"id -u {victim}")), "{node}": node.name}
        fields = {name: known.get(value, value) if isinstance(value, str) else value for name, value in given.items()}
        fields = {name: value for name, value in {"job": victims_job, **fields}.items() if value is not ...}
        fields |= {name: str(fields[name]) for name in ("source", "target") if name in fields}
        fields |= {"job": str(victims_job)} if way == "job as text" else {}
        line = request(op, **fields)
    (reply,) = ask(node, attacker, [line])
    assert json.loads(reply)["ok"] is False
    assert HIDDEN not in reply
    listed = node.output("isthmus network list --json")
    assert (f'"id": {victims_job}' in listed, HIDDEN in listed) == (True, True)


@pytest.mark.attack("S5")
def test_lists_of_the_socket(node, attacker, victims_job):
    """Status and list as another user: the victim's jobs and names in them."""
    reported = " ".join(ask(node, attacker, [request("list"), request("status")]))
    assert (f'"id":{victims_job}' in reported, HIDDEN in reported) == (False, False)


@pytest.mark.attack("S5")
def test_fuzzed_lines(node, attacker):
    """300 fuzzed lines on the daemon's socket: mutations, 100,000 brackets, 200,000 digits."""
    chance = random.Random(12)  # noqa: S311 -- the same each time
    makers = (random_bytes, deep, flipped, changed, changed)
    lines = [makers[index % len(makers)](chance).replace(b"\n", b" ") + b"\n" for index in range(296)]
    lines += [b"[" * 100_000 + b"\n", b"9" * 200_000 + b"\n", b'"\xed\xa0\x80"\n', b"x" * 300_000 + b"\n"]
    before = pid(node)
    replies = ask(node, attacker, lines)
    codes = [json.loads(reply).get("error", {}).get("code", "") for reply in replies]
    assert len(codes) == len(lines)
    assert "internal" not in codes
    assert pid(node) == before


@pytest.mark.attack("S5")
@pytest.mark.parametrize(("command", "uids", "each"), [(IN_NAMESPACE, 20, 16), (ATTACK, 0, 60)])
def test_connections_of_one_account(node, attacker, command, uids, each):
    """More connections than an account may have, by subordinate uids and by one's own."""
    served = int(node.run_as(attacker, f"{command} hold {uids} {each} 2"))
    assert served <= CONNECTIONS_MAX


@pytest.mark.attack("S5")
@pytest.mark.parametrize("whose", ["another's job", "nobody's job"])
def test_long_request_without_the_right(node, attacker, victims_job, whose):
    """Services of 130 KB for a job that is not one's own, read before rights are looked at."""
    job = victims_job if whose == "another's job" else UNKNOWN
    beginning = b'{"version":1,"op":"job_services","job":%d,"services":[' % job
    (reply,) = ask(node, attacker, [beginning + b" " * 5000], "partial")
    assert json.loads(reply)["error"]["code"] in {"forbidden", "not_found"}


@pytest.mark.attack("S5")
def test_descriptors_for_the_daemon(node, attacker):
    """2,000 open files sent along with requests, for the daemon to keep."""
    count = f"ls /proc/{pid(node)}/fd | wc -l"
    before = int(node.output(count))
    assert int(node.run_as(attacker, f"{PEER} hand 20")) > 0
    assert int(node.output(count)) < before + 100


@pytest.mark.attack("S5")
def test_peers_that_read_nothing(login, node, attacker, victim, victims_job):
    """All connections that an account may have, whose peer asks and reads nothing, while others ask."""
    node.output(f"su - {attacker} -c '{PEER} mute {CONNECTIONS_MAX} 6' >/dev/null 2>&1 &")
    login.run_as(victim, f"sleep 1; timeout 20 srun --pod-network --mem=20 --nodelist={node.name} true")
    (reply,) = ask(node, victim, [request("job_get", job=victims_job)])
    assert json.loads(reply)["ok"]
    wait(lambda: node.run(f"pgrep -f {PEER_PLACE}").rc != 0)
    (reply,) = ask(node, attacker, [request("status")])
    assert json.loads(reply)["ok"]


@pytest.mark.attack("S5")
@pytest.mark.full
@pytest.mark.parametrize(
    "flood",
    [f"{ATTACK} flood services 12 0 16", f"{IN_NAMESPACE} flood services 12 12 16", f"{ATTACK} flood short 12 0 16"],
)
def test_job_start_in_a_flood(login, node, attacker, victim, victims_job, flood):
    """Another user's pod network while one floods the daemon, also by subordinate uids."""
    start = f"time -p srun --pod-network --mem=20 --nodelist={node.name} true"
    node.output(f"su - {attacker} -c '{flood} {victims_job}' >/dev/null 2>&1 &")
    reported = login.run_as(victim, f"sleep 1; {{ {start}; }} 2>&1")
    wait(lambda: node.run(f"pgrep -f {PLACE}").rc != 0)
    assert float(reported.split("real ")[1].split()[0]) < 2.5


@pytest.mark.attack("S6")
@pytest.mark.full
def test_every_subordinate_uid_at_once(login, node, attacker, victim, victims_job):
    """All 65,536 subordinate uids: a file, a packet and a connection of each, and 300 with a process that asks."""
    before, left = pid(node), "/tmp/isthmus-attack-uids"
    node.output(f"su - {attacker} -c '{IN_NAMESPACE} uids 20 300' > {left} 2>&1 &")
    try:
        reported = login.run_as(
            victim, f"for n in 1 2 3; do srun --pod-network --mem=20 --nodelist={node.name} true; done"
        )
        (reply,) = ask(node, victim, [request("job_get", job=victims_job)])
        used = json.loads(wait(lambda: node.output(f"cat {left}"), timeout_s=600))
    finally:
        node.output(f"rm {left}")
    assert (reported, json.loads(reply)["ok"]) == ("", True)
    assert used["uids"] >= SUBORDINATE
    assert min(used["sent"], used["connections"]) > 0
    assert used["answered"] == 0
    assert pid(node) == before
    assert int(node.output("cat /proc/sys/net/netfilter/nf_conntrack_count")) < CONNECTIONS_KEPT


@pytest.mark.attack("S7")
def test_churn_of_reservations(node, attacker):
    """An address kept and given back again and again: etcd's history grows with each."""
    lines = [request(op, name="churn") for _ in range(40) for op in ("reserve", "unreserve")]
    codes = [json.loads(reply).get("error", {}).get("code") for reply in ask(node, attacker, lines)]
    node.run_as(attacker, "sleep 2; isthmus network unreserve churn")
    assert codes.count("unavailable") >= len(lines) / 2


@pytest.mark.attack("S8")
@pytest.mark.parametrize("folder", ["/tmp/isthmus-test-x", "$(printf '/tmp/isthmus-test-\\377')"])
def test_process_of_slurmds_name(login, node, attacker, folder):
    """A process called slurmd, in a folder that is no UTF-8: what status says of the plugin."""
    try:
        for place in (login, node):
            place.run_as(
                attacker, f'd={folder}; mkdir -p "$d"; cp /bin/sleep "$d/slurmd"; "$d/slurmd" 20 >/dev/null 2>&1 &'
            )
        reported = [
            json.loads(place.output("sleep 4; isthmus network status --json"))["plugin"] for place in (login, node)
        ]
        assert reported == ["no slurmd runs here", "loaded"]
    finally:
        for place in (login, node):
            place.run_as(attacker, f'd={folder}; rm -r "$d"')


@pytest.mark.attack("S17")
def test_failure_of_anothers_job(login, controller, node, attacker, victim):
    """Why another user's job has no network, once etcd knows it no more."""
    start = f"ISTHMUS_RESERVATION={HIDDEN}-2 salloc --no-shell --pod-network --mem=20 --nodelist={node.name}"
    job = login.run_as(victim, f"{start} 2>&1 | grep -o 'job allocation [0-9]*' | head -1").split()[-1]
    try:
        wait(lambda: node.run(f"test -e /run/isthmus/spank/{job}.error").rc == 0)
        (reply,) = ask(node, attacker, [request("job_get", job=int(job))])
        assert HIDDEN not in reply
    finally:
        jobs.cancel(controller, job)
