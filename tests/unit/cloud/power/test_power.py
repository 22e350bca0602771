"""Nodes are started, deleted and given up once, whatever slurmctld repeats and whatever the cloud refuses."""

import threading
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml

from isthmus.clients.openstack.connection import CloudError
from isthmus.clients.slurm.nodes import NodeState
from isthmus.cloud.power import power as module
from isthmus.cloud.power.power import Outside, Power
from isthmus.cloud.power.settings import PowerSettings
from isthmus.cloud.recorded import Recorded
from isthmus.filters.errors import InputError
from isthmus.model.cloud import Found, Kind, Made
from tests.unit.cloud.given import MARK, NODES, VARIABLES, settings

CLOUD = {"nodes": {**NODES, "b": {"group": "compute", "count": 3, "at": 40, "cloud": True}}}
CLOUD["machines"] = {**VARIABLES["machines"], "b": {"flavor": "small"}}
DOWN = "DOWN+CLOUD+POWERED_DOWN"


class FakeCloud:
    """Servers and ports of a project; it refuses, or fails, names that it is given, and knows no other call."""

    def __init__(self):
        self.servers, self.made, self.lock = {}, [], threading.Lock()
        self.refuses, self.fails, self.away = {}, set(), 0

    def look(self, connection):
        if self.away:
            self.away -= 1
            raise CloudError("asking the cloud for its servers failed: 503", "run it again")
        ports = [
            Found(Kind.PORT, f"port-b{n}", f"hpc-b{n}", MARK, settings={"address": f"10.20.0.{39 + n}"})
            for n in (1, 2, 3)
        ]
        return [*self.servers.values(), *ports]

    def apply(self, step, ids):
        if step.name in self.refuses:
            raise CloudError(f"{step} failed (403): {self.refuses[step.name]}", "run it again")
        assert ids[Kind.PORT, step.wanted.settings["port"]] == f"port-{step.name.removeprefix('hpc-')}"
        status = "ERROR" if step.name in self.fails else "ACTIVE"
        with self.lock:
            assert step.name not in self.servers
            self.made.append((step.name, step.wanted.settings))
            one = Found(Kind.SERVER, f"id-{len(self.made)}", step.name, MARK, status, {"fault": "No valid host"})
            self.servers[step.name] = one
        return Made(Kind.SERVER, step.name, one.id)

    def delete(self, found):
        if found.name in self.refuses:
            raise CloudError(f"removing {found.name} failed: {self.refuses[found.name]}", "never")
        self.servers.pop(found.name, None)

    def listed(self, names, status=""):
        return {name for name, one in self.servers_of(names).items() if status in ("", one.status)}

    def servers_of(self, names):
        return {name: one for name, one in self.servers.items() if name in names}


class FakeSlurm:
    """Nodes by their states; what is set is kept."""

    def __init__(self):
        self.states = {f"b{n}": NodeState(frozenset({"ALLOCATED", "CLOUD", "POWERING_UP"}), "") for n in (1, 2, 3)}
        self.changes = []

    def node_states(self, names):
        return {name: self.states[name] for name in names}

    def update_nodes(self, names, **changes):
        self.changes.append((*names, changes))
        for name in names:
            flags = self.states[name].flags
            if changes.get("State") == "DOWN":
                self.states[name] = NodeState(flags - {"ALLOCATED", "IDLE"} | {"DOWN"}, changes["Reason"])

    def reasons(self):
        return {name: state.reason for name, state in self.states.items() if "DOWN" in state.flags}


class FakeTokens:
    def __init__(self):
        self.valid = {}

    def make(self, name, valid_s):
        self.valid[name] = valid_s
        return f"isthmus1.{name}"

    def starting(self):
        return {*self.valid}

    def drop(self, names):
        for name in names:
            self.valid.pop(name, None)


@pytest.fixture
def bed(tmp_path, monkeypatch):
    cloud, slurm, tokens, lines = FakeCloud(), FakeSlurm(), FakeTokens(), []
    calls = {"apply": cloud.apply, "delete": cloud.delete, "servers": cloud.servers_of, "listed": cloud.listed}
    changes = SimpleNamespace(**calls, fault=lambda server: server.settings["fault"])
    monkeypatch.setattr(module, "connect", lambda name, region: None)
    monkeypatch.setattr(module, "look_at_servers", cloud.look)
    monkeypatch.setattr(module, "Changes", lambda connection, mark: changes)
    given = PowerSettings(settings(**CLOUD), "mine", "", Path("clouds.yaml"), "0a0b0c0d", "10.20.0.10:7443", 600)
    outside = Outside(slurm, tokens, lines.append, tmp_path, 0.0)
    parts = {"cloud": cloud, "slurm": slurm, "tokens": tokens, "lines": lines}
    return SimpleNamespace(**parts, given=given, outside=outside, power=Power(given, outside))


def test_nodes_are_started_with_a_token_of_their_own(bed):
    assert bed.power.resume(["b1", "b2"])
    data = {name: yaml.safe_load(given["user_data"]) for name, given in bed.cloud.made}
    assert data.keys() == {"hpc-b1", "hpc-b2"}
    file = {"path": "/etc/isthmus/join", "permissions": "0600"}
    content = "TOKEN=isthmus1.b2\nSERVER=10.20.0.10:7443\nNAME=b2\n"
    assert data["hpc-b2"]["write_files"] == [{**file, "content": content}]
    assert data["hpc-b2"]["ssh_authorized_keys"] == ["ssh-ed25519 AAAA hpc"]
    assert bed.tokens.valid == {"b1": 600, "b2": 600}
    assert bed.slurm.changes[0] == ("b1", {"NodeAddr": "10.20.0.40", "NodeHostName": "b1"})


def test_second_call_makes_nothing(bed):
    assert bed.power.resume(["b1"])
    assert bed.power.resume(["b1", "b2"])
    assert [name for name, _ in bed.cloud.made] == ["hpc-b1", "hpc-b2"]


def test_two_calls_at_once_make_each_server_once(bed):
    threads = [threading.Thread(target=bed.power.resume, args=[["b1", "b2", "b3"]]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(name for name, _ in bed.cloud.made) == ["hpc-b1", "hpc-b2", "hpc-b3"]


def test_server_of_an_older_start_is_replaced(bed):
    bed.power.resume(["b1"])
    before = bed.cloud.servers["hpc-b1"].id
    bed.tokens.valid.clear()
    assert bed.power.resume(["b1"])
    assert bed.cloud.servers["hpc-b1"].id != before


def test_refused_server_takes_its_node_down_and_no_other(bed):
    bed.cloud.refuses = {"hpc-b2": "Quota exceeded for instances"}
    assert not bed.power.resume(["b1", "b2"])
    assert bed.slurm.reasons() == {
        "b2": "isthmus: cloud: create server hpc-b2 failed (403): Quota exceeded for instances"
    }
    assert bed.cloud.servers.keys() == {"hpc-b1"}


def test_server_that_fails_is_deleted_and_its_node_is_down(bed):
    bed.cloud.fails = {"hpc-b1"}
    assert not bed.power.resume(["b1"])
    assert bed.slurm.reasons() == {"b1": "isthmus: cloud: No valid host"}
    assert not bed.cloud.servers
    assert not bed.tokens.valid


def test_cloud_that_is_away_for_a_moment_takes_no_node_down(bed):
    bed.cloud.away = 2
    assert bed.power.resume(["b1"])
    assert sum("503" in line for line in bed.lines) == 2


def test_cloud_that_is_away_is_an_error_after_three_tries(bed):
    bed.cloud.away = 9
    with pytest.raises(CloudError, match="503"):
        bed.power.resume(["b1"])
    assert bed.cloud.away == 6


def test_idle_nodes_are_deleted_and_may_be_started_again(bed):
    bed.power.resume(["b1", "b2"])
    assert bed.power.suspend(["b1"])
    assert bed.power.suspend(["b1"])
    assert bed.cloud.servers.keys() == {"hpc-b2"}
    assert bed.tokens.valid.keys() == {"b2"}
    assert bed.power.resume(["b1"])
    assert bed.cloud.servers.keys() == {"hpc-b1", "hpc-b2"}


def test_server_that_stays_is_reported_and_tried_again(bed):
    bed.power.resume(["b1"])
    bed.cloud.refuses = {"hpc-b1": "locked"}
    assert not bed.power.suspend(["b1"])
    assert "removing hpc-b1 failed: locked; it is tried again" in bed.lines
    bed.cloud.refuses = {}
    bed.slurm.states["b1"] = NodeState(frozenset({"IDLE", "CLOUD", "POWERED_DOWN"}), "")
    bed.slurm.states |= {name: bed.slurm.states["b1"] for name in ("b2", "b3")}
    assert bed.power.reconcile()
    assert not bed.cloud.servers


def test_node_that_does_not_join_is_given_up_with_the_reason(bed):
    bed.power.resume(["b1"])
    bed.slurm.states["b1"] = NodeState(frozenset(DOWN.split("+")), "ResumeTimeout reached")
    assert not bed.power.fail(["b1"])
    assert not bed.cloud.servers
    assert bed.slurm.reasons() == {"b1": "isthmus: cloud: it did not join within 600 s"}


def test_reason_of_a_node_that_is_down_already_stays(bed):
    bed.cloud.fails = {"hpc-b1"}
    bed.power.resume(["b1"])
    bed.power.fail(["b1"])
    assert bed.slurm.reasons() == {"b1": "isthmus: cloud: No valid host"}


def test_node_goes_down_also_where_its_server_cannot_be_deleted(bed):
    bed.power.resume(["b1"])
    bed.cloud.away = 9
    bed.power.fail(["b1"])
    assert "its server is not deleted yet" in bed.slurm.reasons()["b1"]


def test_start_that_was_cut_off_is_made_good(bed):
    bed.slurm.states |= {name: NodeState(frozenset({"IDLE", "POWERED_DOWN"}), "") for name in ("b2", "b3")}
    assert bed.power.reconcile()
    assert bed.cloud.servers.keys() == {"hpc-b1"}


def test_node_whose_server_is_gone_goes_down_and_is_powered_down(bed):
    bed.slurm.states |= {name: NodeState(frozenset({"IDLE", "POWERED_DOWN"}), "") for name in ("b2", "b3")}
    bed.slurm.states["b1"] = NodeState(frozenset({"ALLOCATED", "CLOUD"}), "")
    assert not bed.power.reconcile()
    assert bed.slurm.reasons() == {"b1": "isthmus: cloud: its server is gone"}
    assert bed.slurm.changes[-1] == ("b1", {"State": "POWER_DOWN_FORCE"})


def test_node_that_is_not_the_clouds_is_refused(bed):
    with pytest.raises(CloudError, match="c1: no node of the cloud's"):
        bed.power.suspend(["c1"])


def test_strangers_server_of_the_same_name_is_left(bed):
    bed.cloud.servers["hpc-b1"] = Found(Kind.SERVER, "x", "hpc-b1", "isthmus.hpc.ffffffff", "ACTIVE")
    bed.power.suspend(["b1"])
    assert "hpc-b1" in bed.cloud.servers


def test_run_that_does_not_end_is_an_error(bed, tmp_path):
    power = Power(bed.given, replace(bed.outside, lock_s=0.1))
    with Recorded(tmp_path / "record.json", dry=False), pytest.raises(InputError, match="wait for it"):
        power.resume(["b1"])
