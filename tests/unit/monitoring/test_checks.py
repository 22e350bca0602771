"""What counts as a fault of a node, and how `isthmus node check` reports it."""

import os
import threading
import time
from types import SimpleNamespace

import pytest

from isthmus.cli.node.check import Finding, Level, findings
from isthmus.clients.process import Finished, ProcessError
from isthmus.monitoring import checks
from isthmus.network.node.plugin import Plugin
from tests.support.files import certificates

FSTAB = """# a comment with /words in it defaults
nas:/home /home nfs defaults 0 0
UUID=1 /boot ext4 defaults 0 2
/dev/sdb /spare ext4 noauto 0 0
/dev/sdc /maybe ext4 defaults,nofail 0 0
UUID=2 none swap sw 0 0
"""


def test_what_fstab_wants_is_mounted_or_named():
    mounted = "/dev/sda / ext4 rw 0 0\nUUID=1 /boot ext4 rw 0 0\n"
    assert checks.missing_mounts(FSTAB, mounted) == ["/home"]
    assert checks.missing_mounts(FSTAB, f"{mounted}nas:/home /home nfs4 rw 0 0\n") == []


def test_look_that_hangs_or_fails_is_no_answer(tmp_path):
    assert checks.answers(lambda: os.listdir(tmp_path), 5)
    assert not checks.answers(lambda: os.listdir(tmp_path / "none"), 5)
    never = threading.Event()
    began = time.monotonic()
    assert not checks.answers(never.wait, 0.05)
    assert time.monotonic() - began < 5
    never.set()


@pytest.mark.parametrize(("room", "names", "is_full"), [(2, 2, False), (0, 50, True), (50, 0, True), (50, None, False)])
def test_full_lacks_room_or_names(room, names, is_full):
    files = (0, 0) if names is None else (100, names)
    found = SimpleNamespace(f_blocks=100, f_bavail=room, f_files=files[0], f_favail=files[1])
    assert checks.full(found) is is_full


def test_daemon_that_is_not_there_is_a_fault(monkeypatch, tmp_path):
    monkeypatch.setattr(checks, "ROOT_SOCKET", tmp_path / "none")
    assert not checks.network_answers(time.monotonic() + 0.5)


SHOWN = """Id=slurmd.service
ActiveState=failed
UnitFileState=enabled

Id=slurmctld.service
ActiveState=inactive
UnitFileState=

Id=munge.service
ActiveState=active
UnitFileState=enabled

Id=sackd.service
ActiveState=inactive
UnitFileState=disabled
"""


def test_enabled_daemon_that_stands_still_is_named(monkeypatch):
    assert checks.enabled_units(SHOWN) == {"slurmd": False, "munge": True}
    monkeypatch.setattr(checks, "run", lambda *_, **__: Finished(SHOWN, ""))
    assert checks.problems_of(named("daemons")) == ["slurmd does not run"]


def check(problems=(), **more):
    return checks.Check("disks", lambda: iter(problems), "make room", **more)


def test_findings_have_levels_and_remedies():
    assert findings([check()]) == [Finding("disks", Level.OK)]
    assert findings([check(["/tmp is full"], drains=True)]) == [
        Finding("disks", Level.FAILURE, "/tmp is full", "make room", drains=True)
    ]
    assert findings([check(["soon"], warns=True)])[0].level is Level.WARNING


@pytest.mark.parametrize("error", [OSError("gone"), ProcessError("systemctl", 1, "it failed")])
def test_look_that_cannot_be_made_is_a_problem(error):
    def look():
        raise error
        yield

    assert checks.problems_of(checks.Check("disks", look, "")) == [f"disks: {error}"]


def test_looks_that_drain_are_those_that_take_a_node_out_of_service():
    assert [each.name for each in checks.CHECKS if each.drains] == ["mounts", "home", "fuse", "disks", "network"]
    assert len({each.name for each in checks.CHECKS}) == len(checks.CHECKS)


def named(name):
    return next(each for each in checks.CHECKS if each.name == name)


@pytest.mark.parametrize(("said", "problems"), [("no\n", 1), ("yes\n", 0), ("", 0)])
def test_clock_that_is_not_synchronized_is_a_warning(monkeypatch, tmp_path, said, problems):
    monkeypatch.setattr(checks, "CONTAINER", tmp_path / "container")
    monkeypatch.setattr(checks, "run", lambda *_, **__: Finished(said, ""))
    assert len(checks.problems_of(named("clock"))) == problems


def test_container_has_its_machines_clock(monkeypatch, tmp_path):
    monkeypatch.setattr(checks, "CONTAINER", tmp_path)
    assert checks.problems_of(named("clock")) == []


@pytest.mark.parametrize(
    ("said", "problems"), [("success\n", []), ("exit-code\n", ["the registry was not cleaned: exit-code"])]
)
def test_cleaning_that_failed_is_a_warning(monkeypatch, said, problems):
    monkeypatch.setattr(checks, "run", lambda *_, **__: Finished(said, ""))
    assert checks.problems_of(named("cleaning")) == problems
    assert named("cleaning").warns


@pytest.mark.parametrize("errors", [{}, {"encryption": "no encrypted way to c2"}])
def test_node_that_others_are_not_reached_from_is_a_problem(monkeypatch, tmp_path, errors):
    monkeypatch.setattr(checks, "NETWORK", tmp_path)
    monkeypatch.setattr(checks, "ask", lambda *_: {"errors": errors})
    assert checks.problems_of(named("encryption")) == list(errors.values())
    assert not named("encryption").drains


@pytest.mark.parametrize(("state", "problems"), [(Plugin.MISSING, 1), (Plugin.LOADED, 0), (Plugin.NO_SLURMD, 0)])
def test_slurmd_without_the_plugin_is_a_problem(monkeypatch, tmp_path, state, problems):
    monkeypatch.setattr(checks, "NETWORK", tmp_path)
    monkeypatch.setattr(checks, "ask", lambda *_: {"plugin": str(state)})
    assert len(checks.problems_of(named("plugin"))) == problems


def test_certificate_that_ends_soon_is_a_warning(monkeypatch, tmp_path):
    certificates.write(tmp_path / "tls")
    monkeypatch.setattr(checks, "CERTIFICATES", tmp_path / "tls")
    monkeypatch.setattr(checks, "DAYS_LEAST", 0)
    assert checks.problems_of(named("certificates")) == []
    monkeypatch.setattr(checks, "DAYS_LEAST", 100_000)
    assert all(" ends in " in problem for problem in checks.problems_of(named("certificates")))
    assert len(checks.problems_of(named("certificates"))) == 3
