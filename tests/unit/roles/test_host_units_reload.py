"""The module host_units: settings that are handed on by a reload, and units that must answer."""

import os

import pytest

from tests.support import ansible_modules
from tests.support.fakes.systemd import Systemd


@pytest.fixture
def systemd():
    return Systemd()


@pytest.fixture
def nodes(tmp_path):
    file = tmp_path / "nodes.conf"
    file.write_text("1")
    os.utime(file, (1, 1))
    return file


@pytest.fixture
def bring(monkeypatch, tmp_path, systemd, nodes):
    """Run the module on a unit `demo` that is notified of nodes.conf by `reread`; returns its result."""
    module = ansible_modules.load("library/host_units.py")
    monkeypatch.setattr(module, "RECORDS", tmp_path / "records")
    monkeypatch.setattr(module.time, "sleep", lambda _: None)
    monkeypatch.setattr(module.AnsibleModule, "run_command", lambda _, argv, **_options: systemd.run(argv))

    def call(*, check=False, **more):
        unit = {"name": "demo", "reload": ["reread"], "reload_files": [str(nodes)], "ready": ["ping"]} | more
        return ansible_modules.run(module, units=[unit], _ansible_check_mode=check)

    return call


def test_first_start_hands_settings_on_once(bring):
    assert bring()["units"] == ["demo: enabled", "demo: started", "demo: reloaded"]
    assert not bring()["changed"]


def test_changed_file_is_handed_on_without_a_restart(bring, systemd, nodes):
    bring()
    nodes.write_text("2")
    systemd.done.clear()
    assert bring()["units"] == ["demo: reloaded"]
    assert systemd.done == ["ping", "reread"]
    assert not bring()["changed"]


def test_file_of_both_kinds_restarts_and_is_handed_on(bring, systemd, nodes):
    both = {"files": [str(nodes)]}
    bring(**both)
    nodes.write_text("2")
    systemd.done.clear()
    assert bring(**both)["units"] == ["demo: restarted", "demo: reloaded"]
    assert systemd.done == ["restart demo", "ping", "reread"]


def test_reload_is_due_though_somebody_restarted_the_unit(bring, systemd, nodes):
    """The unit itself has the new settings then; those that it hands them on to have not."""
    bring()
    nodes.write_text("2")
    systemd.start_after(nodes)
    assert bring()["units"] == ["demo: reloaded"]


def test_reload_that_failed_is_due_again(bring, systemd, nodes):
    bring()
    nodes.write_text("2")
    systemd.refuses = {"reread"}
    assert "`reread` failed for 0 s: refused" in bring(timeout_s=0)["msg"]
    systemd.refuses = set()
    assert bring()["units"] == ["demo: reloaded"]


def test_running_unit_of_an_earlier_version_is_left(bring, systemd, nodes):
    """It has no record, but runs longer than its files are there as they are."""
    systemd.start_after(nodes)
    systemd.enabled = "enabled"
    assert not bring()["changed"]


def test_running_unit_without_a_record_is_reloaded_after_a_change(bring, systemd, nodes):
    systemd.start_before(nodes)
    systemd.enabled = "enabled"
    assert bring()["units"] == ["demo: reloaded"]


def test_unit_that_does_not_answer_is_reported(bring, systemd):
    systemd.refuses = {"ping"}
    result = bring(timeout_s=0)
    assert result["failed"]
    assert "`ping` failed for 0 s: refused; see `journalctl -u demo` on this host" in result["msg"]


def test_check_run_asks_nothing(bring, systemd, nodes):
    bring()
    nodes.write_text("2")
    systemd.done.clear()
    assert bring(check=True)["units"] == ["demo: reloaded"]
    assert not systemd.done
