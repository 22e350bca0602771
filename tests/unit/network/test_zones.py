"""The names of all users, state after state: as if worked out again, and no more work than what changed."""

from dataclasses import replace
from ipaddress import IPv4Address, IPv4Network

from hypothesis import given, settings
from hypothesis import strategies as st

from isthmus.model.network import Attachment, Driver, Job, State, User
from isthmus.network.dns import records as dns
from isthmus.network.dns.zones import PRIVATE, Zones
from isthmus.network.drivers.registry import NAMES as EVERY

NETWORKS = (PRIVATE, (Driver.FLANNEL,), EVERY)
UIDS = (1001, 1002, 1003)
ALICE = User(1001, "alice", 4096, (IPv4Network("10.64.0.0/24"),), reserved={"web": IPv4Address("10.64.0.200")})
BOB = User(1002, "bob", 4097, (IPv4Network("10.64.1.0/24"),))


def job(number, uid=1001, driver=Driver.PRIVATE, name="run"):
    addresses = (IPv4Address("10.64.0.10") + number,) if driver is Driver.PRIVATE else ()
    return Job(number, uid, name, driver, ("c1",), addresses)


def state(*jobs, users=(ALICE, BOB), reported=()):
    attachments = {(each.job, each.node): each for each in reported}
    return State(
        users={each.uid: each for each in users}, jobs={each.id: each for each in jobs}, attachments=attachments
    )


def again(now, uid=None, networks=PRIVATE):
    zones = Zones("cl")
    zones.follow(now)
    return zones.all_users(networks) if uid is None else zones.text(uid, networks)


def test_user_has_the_names_of_his_own_jobs_in_each_network():
    reported = Attachment(2, "c1", IPv4Address("10.128.1.2"))
    now = state(job(1), job(2, driver=Driver.FLANNEL), job(3, 1002), reported=[reported])
    named = "10.128.1.2 pod0.2.alice.cl pod0.run.alice.cl 2.alice.cl run.alice.cl"
    assert again(now, 1001).splitlines() == [
        "10.64.0.200 web.alice.cl",
        "10.64.0.11 pod0.1.alice.cl pod0.run.alice.cl 1.alice.cl run.alice.cl",
    ]
    assert again(now, 1001, (Driver.FLANNEL,)).splitlines() == [named]
    assert again(now, networks=(Driver.FLANNEL,)).splitlines() == [named]
    assert again(now, networks=EVERY).split().count("run.alice.cl") == 1
    assert again(now, networks=EVERY).endswith("10.64.0.13 pod0.3.bob.cl pod0.run.bob.cl 3.bob.cl run.bob.cl\n")


def test_user_without_network_has_no_names():
    assert again(State(), 1001) == ""
    assert again(state(job(1), users=[]), 1001) == ""


def test_job_of_one_user_leaves_the_texts_of_others_as_they_are(monkeypatch):
    asked = []

    def hosts(user_name, *arguments):
        asked.append(user_name)
        return made(user_name, *arguments)

    made = dns.hosts
    monkeypatch.setattr(dns, "hosts", hosts)
    zones, before = Zones("cl"), state(job(1), job(2, 1002))
    for now in (before, before, replace(before, jobs={**before.jobs, 3: job(3, 1002)})):
        zones.follow(now)
        zones.all_users(EVERY)
    assert asked == ["alice", "bob", "bob"]


PARTS = st.tuples(
    st.integers(1, 6), st.sampled_from(UIDS), st.sampled_from(list(EVERY)), st.sampled_from(["a", "b", ""])
)


@st.composite
def states(draw):
    """Draw states that come one after the other, and share what did not change."""
    found, jobs, users, reported = [], {}, {}, {}
    for _ in range(draw(st.integers(1, 8))):
        jobs, users, reported = dict(jobs), dict(users), dict(reported)
        for kind in draw(st.sets(st.sampled_from(["job", "end", "user", "leave", "attach", "detach"]), min_size=1)):
            change(kind, draw(PARTS), jobs, users, reported)
        found.append(State({}, users, jobs, attachments=reported))
    return found


def change(kind, parts, jobs, users, reported):
    number, uid, driver, name = parts
    match kind:
        case "job":
            jobs[number] = job(number, uid, driver, name)
        case "end":
            jobs.pop(number, None)
        case "user":
            users[uid] = User(uid, name or "x", 4096 + uid, reserved={"web": IPv4Address("10.64.0.9")})
        case "leave":
            users.pop(uid, None)
        case "attach":
            reported[number, "c1"] = Attachment(number, "c1", IPv4Address("10.128.0.1") + uid)
        case "detach":
            reported.pop((number, "c1"), None)


@settings(deadline=None, database=None, max_examples=300)
@given(states())
def test_texts_are_those_of_one_who_never_saw_another_state(following):
    zones = Zones("cl")
    for now in following:
        zones.follow(now)
        for networks in NETWORKS:
            assert zones.all_users(networks) == again(now, networks=networks)
            assert [zones.text(uid, networks) for uid in UIDS] == [again(now, uid, networks) for uid in UIDS]
