"""The programs that slurmctld runs: whatever breaks, the nodes do not wait for nothing, and the log says why."""

import sys

import pytest

from isthmus.cli import cloud_power
from isthmus.clients.slurm.commands import SlurmError


class FakeSlurm:
    """scontrol, of which two commands are known."""

    def __init__(self, broken=False):
        self.broken, self.changes = broken, []

    def host_names(self, folded):
        return {"b[1-2]": ["b1", "b2"]}[folded]

    def update_nodes(self, names, **changes):
        if self.broken:
            raise SlurmError("slurmctld was asked in vain")
        self.changes.append((*names, changes))


class FakePower:
    def __init__(self, done=True):
        self.done, self.asked = done, []

    def resume(self, names):
        self.asked.append(names)
        return self.done


@pytest.fixture
def slurm(monkeypatch):
    fake = FakeSlurm()
    monkeypatch.setattr(cloud_power, "slurm", fake)
    monkeypatch.setattr(cloud_power, "_log", lambda: None)
    monkeypatch.setattr(sys, "argv", ["isthmus-cloud-resume", "b[1-2]"])
    return fake


def ended(call):
    with pytest.raises(SystemExit) as found:
        call()
    return found.value.code


@pytest.mark.parametrize(("done", "status"), [(True, 0), (False, 1)])
def test_nodes_are_expanded_and_the_status_says_whether_all_is_well(slurm, monkeypatch, done, status):
    power = FakePower(done)
    monkeypatch.setattr(cloud_power, "_power", lambda: power)
    assert ended(cloud_power.resume) == status
    assert power.asked == [["b1", "b2"]]
    assert slurm.changes == []


def fails():
    raise RuntimeError("openstack\nis not  installed")


def test_nodes_of_a_start_that_breaks_off_are_down_with_the_reason(slurm, monkeypatch, caplog):
    monkeypatch.setattr(cloud_power, "_power", fails)
    assert ended(cloud_power.resume) == 1
    reason = "isthmus: cloud: it was not started: openstack is not installed"
    assert slurm.changes == [("b1", "b2", {"State": "DOWN", "Reason": reason})]
    assert "isthmus-cloud-resume b[1-2] broke off" in caplog.text


def test_end_that_breaks_off_leaves_the_nodes_to_the_timer(slurm, monkeypatch, caplog):
    monkeypatch.setattr(cloud_power, "_power", fails)
    assert ended(cloud_power.suspend) == 1
    assert slurm.changes == []
    assert "broke off" in caplog.text


def test_slurm_that_is_away_too_is_logged(slurm, monkeypatch, caplog):
    slurm.broken = True
    monkeypatch.setattr(cloud_power, "_power", fails)
    assert ended(cloud_power.resume) == 1
    assert "b1,b2 could not be taken out of service" in caplog.text
