"""Steps in their order, the record between them, and what is left when one fails."""

import json
from collections.abc import Iterable
from dataclasses import replace

import pytest

from isthmus.clients.openstack.connection import CloudError
from isthmus.cloud import main
from isthmus.cloud.desired import desired
from isthmus.cloud.ownership import Record
from isthmus.cloud.plan import plan, removal
from isthmus.cloud.recorded import Recorded
from isthmus.cloud.work import Work
from isthmus.model.cloud import Found, Kind, Made, Step, Verb, Wanted
from tests.unit.cloud.given import MARK, NODES, OFFER, VARIABLES, cloud, found, settings

WANTED = desired(settings(spread=["ctl", "c1"]))


class FakeChanges:
    """A cloud in which each call succeeds, but for names that it is given; it knows no call beside these six."""

    def __init__(self, refuses: Iterable[str] = (), fails: Iterable[str] = ()) -> None:
        self.refuses, self.fails = set(refuses), set(fails)
        self.there: dict[tuple[Kind, str], str] = {}
        self.made: list[Kind] = []

    def apply(self, step: Step, ids: dict[tuple[Kind, str], str]) -> Made:
        if step.name in self.refuses and step.kind is Kind.SERVER:
            raise CloudError(f"{step} failed", "never")
        if step.kind is Kind.SERVER and step.verb is not Verb.START:
            assert ids[Kind.PORT, step.name]
        self.made.append(step.kind)
        self.there[step.kind, step.name] = "ERROR" if step.name in self.fails else "ACTIVE"
        return Made(
            step.kind, step.name, f"id-{step.kind}-{step.name}", "192.0.2.7" if step.kind is Kind.FLOATING_IP else ""
        )

    def ports(self, wanted: list[Wanted], ids: dict[tuple[Kind, str], str]) -> list[Made]:
        assert all(ids[Kind.SUBNET, one.settings["network"]] for one in wanted)
        self.there |= {(one.kind, one.name): "DOWN" for one in wanted}
        return [Made(one.kind, one.name, f"id-{one.kind}-{one.name}") for one in wanted]

    def delete(self, gone: Found) -> None:
        if gone.name in self.refuses:
            raise CloudError(f"removing {gone.name} failed", "never")
        self.there.pop((gone.kind, gone.name), None)

    def servers(self, names: Iterable[str]) -> dict[str, Found]:
        return {
            name: Found(Kind.SERVER, name, name, status=status)
            for (kind, name), status in self.there.items()
            if kind is Kind.SERVER and name in names
        }

    def listed(self, names: Iterable[str], status: str = "") -> set[str]:
        return {name for name, one in self.servers(names).items() if status in ("", one.status)}

    def fault(self, server: Found) -> str:
        assert server.status == "ERROR"
        return "No valid host was found"


@pytest.fixture
def recorded(tmp_path):
    with Recorded(tmp_path / "record.json", dry=False) as recorded:
        recorded.save(Record("0a0b0c0d", "p1"))
        yield recorded


def make(changes, recorded, *there):
    chosen = plan(cloud(*there), WANTED, recorded.current, MARK)
    Work(changes, recorded, lambda line: None, 0.2, 0.01).make(chosen)


def test_all_is_made_and_recorded(recorded):
    changes = FakeChanges()
    make(changes, recorded)
    assert changes.there.keys() == {(one.kind, one.name) for one in WANTED}
    assert changes.made.index(Kind.SERVER) > changes.made.index(Kind.ROUTER) > changes.made.index(Kind.SUBNET)
    again = recorded.load()
    assert dict(again.made).keys() == changes.there.keys()
    assert again.addresses == {"hpc-login": "192.0.2.7"}
    assert not again.begun


def test_volume_is_made_beside_the_network_as_only_a_server_needs_it(recorded):
    """It takes seconds until a volume can be attached."""
    changes = FakeChanges()
    chosen = plan(cloud(), desired(settings(home_gib=3)), recorded.current, MARK)
    Work(changes, recorded, lambda line: None, 0.2, 0.01).make(chosen)
    assert changes.made.index(Kind.VOLUME) < changes.made.index(Kind.SUBNET)


def test_router_goes_while_servers_do(recorded):
    """It needs the floating IP gone, and no server."""

    class Slow(FakeChanges):
        def delete(self, gone):
            assert gone.kind is not Kind.ROUTER or (Kind.FLOATING_IP, "hpc-login") not in self.there
            super().delete(gone)

        def listed(self, names, status=""):
            return {"hpc-c1"}.intersection(names) if not status and (Kind.ROUTER, "hpc-router") in self.there else set()

    changes = Slow()
    make(changes, recorded)
    steps = removal(cloud(*map(found, WANTED)), recorded.current, MARK)
    Work(changes, recorded, lambda line: None, 5, 0.01).remove(steps)
    assert changes.there == {}
    assert not recorded.load().made


def test_ports_are_made_by_the_ten(recorded):
    calls = []

    class Counting(FakeChanges):
        def ports(self, wanted, ids):
            calls.append(len(wanted))
            return super().ports(wanted, ids)

    nodes = {**NODES, "c": {"group": "compute", "count": 21, "at": 21}}
    wanted = desired(settings(nodes=nodes))
    Work(Counting(), recorded, lambda line: None, 0.2, 0.01).make(plan(cloud(), wanted, recorded.current, MARK))
    assert sorted(calls) == [3, 10, 10]
    assert sum(kind is Kind.PORT for kind, _ in dict(recorded.load().made)) == 23


def test_what_was_made_beside_a_refused_server_is_recorded(recorded):
    changes = FakeChanges(refuses=["hpc-c1"])
    with pytest.raises(CloudError, match="create server hpc-c1 failed; run it again"):
        make(changes, recorded)
    servers = {name for kind, name in dict(recorded.load().made) if kind is Kind.SERVER}
    assert servers == {"hpc-ctl", "hpc-login", "hpc-c2"}


def test_unmarked_resources_are_named_before_they_are_made(recorded):
    class Cut(FakeChanges):
        def apply(self, step, ids):
            assert {(Kind.KEY_PAIR, "hpc-key"), (Kind.SERVER_GROUP, "hpc-spread")} <= recorded.load().begun
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        make(Cut(), recorded)


def test_what_a_killed_run_made_is_recorded_by_the_next(recorded):
    """Its steps were not: an error would name less than there is."""
    make(FakeChanges(), recorded, *(found(one) for one in WANTED if one.kind is Kind.NETWORK))
    assert dict(recorded.load().made).keys() == {(one.kind, one.name) for one in WANTED}


def test_failed_server_is_reported_with_its_reason(recorded):
    with pytest.raises(CloudError, match="hpc-c2: No valid host was found; the next run replaces them"):
        make(FakeChanges(fails=["hpc-c2"]), recorded)


def test_failed_run_says_what_the_cluster_has_in_the_cloud(tmp_path, monkeypatch):
    monkeypatch.setattr(main, "connect", lambda *names: None)
    monkeypatch.setattr(main, "region_of", lambda connection: "")
    monkeypatch.setattr(main, "look", lambda connection: cloud())
    monkeypatch.setattr(main, "Changes", lambda connection, *given: FakeChanges(refuses=["hpc-c1"]))
    path = tmp_path / "record.json"
    given = VARIABLES | {"record": str(path), "cloud": "", "region": "", "identity": "", "home_keep": False}
    result = main.run({"state": "present", "settings": given}, lambda line: None)
    assert "create server hpc-c1 failed; run it again; it continues; this cluster has in the cloud: " in result["msg"]
    assert f"port 4, router 1, security group 2, server 3, subnet 1 (names: {path})" in result["msg"]


def test_failed_server_whose_reason_cannot_be_had_is_reported_all_the_same(recorded):
    class Silent(FakeChanges):
        def fault(self, server):
            raise CloudError(f"asking for server {server.name} failed: 503", "run it again")

    with pytest.raises(CloudError, match="servers failed: hpc-c2: asking for server hpc-c2 failed: 503; the next run"):
        make(Silent(fails=["hpc-c2"]), recorded)


def test_details_are_asked_for_when_no_server_is_built_any_more(recorded):
    asked = []

    class Building(FakeChanges):
        left = 3

        def listed(self, names, status=""):
            assert status == "BUILD"
            self.left -= 1
            return {"hpc-c1"} if self.left else set()

        def servers(self, names):
            asked.append(self.left)
            return super().servers(names)

    make(Building(), recorded)
    assert asked == [0]


def test_server_that_is_built_for_ever_ends_the_run(recorded):
    class Stuck(FakeChanges):
        def servers(self, names):
            return {name: replace(one, status="BUILD") for name, one in super().servers(names).items()}

    with pytest.raises(CloudError, match=r"not running: .*hpc-c2; run it again later"):
        make(Stuck(), recorded)


def test_server_that_never_runs_ends_the_run(recorded):
    class Slow(FakeChanges):
        def servers(self, names):
            return {}

    with pytest.raises(CloudError, match=r"not running: .*hpc-c2; run it again later"):
        make(Slow(), recorded)


def test_failed_server_is_removed_before_another_takes_its_port(recorded):
    changes = FakeChanges()
    make(changes, recorded)
    there = [found(one, **({"status": "ERROR"} if one.name == "hpc-c1" else {})) for one in WANTED]
    changes.there[Kind.SERVER, "hpc-c1"] = "ERROR"
    make(changes, recorded, *there)
    assert changes.there[Kind.SERVER, "hpc-c1"] == "ACTIVE"


def test_removal_forgets_what_went_and_keeps_what_stayed(recorded):
    changes = FakeChanges()
    make(changes, recorded)
    changes.refuses = {"hpc-c1"}
    steps = removal(cloud(*map(found, WANTED)), recorded.current, MARK)
    with pytest.raises(CloudError, match="removing hpc-c1 failed"):
        Work(changes, recorded, lambda line: None, 0.2, 0.01).remove(steps)
    left = dict(recorded.load().made)
    assert (Kind.SERVER, "hpc-c1") in left
    assert (Kind.FLOATING_IP, "hpc-login") not in left
    assert left.keys().isdisjoint({(Kind.SERVER, "hpc-c2"), (Kind.PORT, "hpc-c2")})
    assert {(Kind.PORT, "hpc-c1"), (Kind.SUBNET, "hpc-net")} <= left.keys()


def test_port_goes_once_its_server_is_gone(recorded):
    """And no later: nova would make or detach something of its own."""

    class Slow(FakeChanges):
        has_gone = False

        def delete(self, gone):
            assert self.has_gone or (gone.kind, gone.name) != (Kind.PORT, "hpc-c1")
            super().delete(gone)

        def listed(self, names, status=""):
            others = {(Kind.PORT, f"hpc-{node}") for node in ("ctl", "login", "c2")}
            self.has_gone = others.isdisjoint(self.there)
            return set() if status or self.has_gone else {"hpc-c1"}.intersection(names)

    changes = Slow()
    make(changes, recorded)
    steps = removal(cloud(*map(found, WANTED)), recorded.current, MARK)
    Work(changes, recorded, lambda line: None, 5, 0.01).remove(steps)
    assert changes.there == {}
    assert not recorded.load().made


@pytest.mark.parametrize("state", ["present", "absent"])
def test_another_region_than_the_recorded_one_is_refused(tmp_path, monkeypatch, state):
    path = tmp_path / "record.json"
    with Recorded(path, dry=False) as recorded:
        recorded.save(Record("0a0b0c0d", "p1", region="north"))
    monkeypatch.setattr(main, "connect", lambda *names: None)
    monkeypatch.setattr(main, "region_of", lambda connection: "south")
    monkeypatch.setattr(main, "look", lambda connection: pytest.fail("a service of that region was asked"))
    given = VARIABLES | {"record": str(path), "cloud": "", "region": "", "identity": "", "home_keep": False}
    result = main.run({"state": state, "settings": given}, lambda line: None)
    assert "is of region 'north', the inventory chooses 'south'; choose that region, or give" in result["msg"]


def test_region_is_recorded_where_an_earlier_release_did_not(tmp_path, monkeypatch):
    path = tmp_path / "record.json"
    with Recorded(path, dry=False) as recorded:
        recorded.save(Record("0a0b0c0d", "p1"))
    path.write_text(json.dumps({key: value for key, value in json.loads(path.read_text()).items() if key != "region"}))
    monkeypatch.setattr(main, "connect", lambda *names: None)
    monkeypatch.setattr(main, "region_of", lambda connection: "south")
    monkeypatch.setattr(main, "look", lambda connection: cloud(offer=replace(OFFER, region="south")))
    monkeypatch.setattr(main, "Changes", lambda connection, *given: FakeChanges())
    given = VARIABLES | {"record": str(path), "cloud": "", "region": "", "identity": "", "home_keep": False}
    assert main.run({"state": "present", "settings": given}, lambda line: None)["changed"]
    assert json.loads(path.read_text())["region"] == "south"
