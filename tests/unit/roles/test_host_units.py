"""The module host_units: a restart is due by what a process began with, by any starter and after any interruption."""

import json
import os

import pytest

from tests.support import ansible_modules
from tests.support.fakes.systemd import Systemd


@pytest.fixture
def systemd():
    return Systemd()


@pytest.fixture
def conf(tmp_path):
    file = tmp_path / "demo.conf"
    file.write_text("1")
    os.utime(file, (1, 1))
    return file


@pytest.fixture
def bring(monkeypatch, tmp_path, systemd, conf):
    """Run the module on a unit `demo` that reads demo.conf; returns its result."""
    module = ansible_modules.load("library/host_units.py")
    monkeypatch.setattr(module, "RECORDS", tmp_path / "records")
    monkeypatch.setattr(module.AnsibleModule, "run_command", lambda _, argv, **_options: systemd.run(argv))

    def call(*, check=False, **more):
        unit = {"name": "demo", "files": [str(conf)]} | more
        return ansible_modules.run(module, units=[unit], _ansible_check_mode=check)

    return call


def test_unit_is_enabled_and_started_once(bring, systemd):
    first, again = bring(), bring()
    assert first["units"] == ["demo: enabled", "demo: started"]
    assert (again["changed"], again["units"]) == (False, [])
    assert systemd.done == ["enable demo", "start demo"]


def test_restart_that_was_cut_off_is_made_up_for(bring, conf):
    """The run that wrote the file never came to the unit; the next one writes nothing."""
    bring()
    conf.write_text("2")
    assert bring()["units"] == ["demo: restarted"]
    assert not bring()["changed"]


def test_same_content_written_again_restarts_nothing(bring, conf):
    bring()
    conf.write_text("1")
    assert not bring()["changed"]


def test_file_that_is_gone_restarts(bring, conf):
    bring()
    conf.unlink()
    assert bring()["units"] == ["demo: restarted"]


def test_process_somebody_else_started_before_the_change_is_restarted(bring, systemd, conf):
    systemd.start_before(conf)
    systemd.enabled = "enabled"
    assert bring()["units"] == ["demo: restarted"]


def test_process_somebody_else_started_after_the_change_is_left(bring, systemd, conf):
    bring()
    conf.write_text("2")
    systemd.start_after(conf)
    assert not bring()["changed"]
    conf.write_text("3")
    assert bring()["units"] == ["demo: restarted"]


def test_clock_that_was_set_back_hides_no_change(bring, systemd, conf):
    bring()
    conf.write_text("2")
    systemd.began += 1_000_000_000
    assert bring()["units"] == ["demo: restarted"]


def test_check_run_reports_and_does_nothing(bring, systemd, conf):
    assert bring(check=True)["units"] == ["demo: enabled", "demo: started"]
    bring()
    conf.write_text("2")
    systemd.done.clear()
    result = bring(check=True)
    assert (result["changed"], result["diff"]["after"]) == (True, "demo: restarted\n")
    assert not systemd.done
    assert bring()["changed"]


def test_check_run_of_a_host_without_the_package_reports(bring, systemd):
    systemd.load = "not-found"
    assert bring(check=True)["units"] == ["demo: enabled", "demo: started"]


@pytest.mark.parametrize("load", ["not-found", "masked"])
def test_unit_that_cannot_run_is_refused(bring, systemd, load):
    systemd.load = load
    assert f"demo is {load}; install its package" in bring()["msg"]


def test_changed_unit_file_is_read_first(bring, systemd):
    systemd.outdated = True
    bring()
    assert systemd.done[0] == "daemon-reload"


def test_failed_restart_is_reported_and_tried_again(bring, systemd, conf):
    bring()
    conf.write_text("2")
    systemd.broken = True
    assert "journalctl -u demo" in bring()["msg"]
    systemd.broken, systemd.active = False, "failed"
    assert bring()["units"] == ["demo: started"]


def test_records_are_roots_alone(bring, tmp_path):
    bring()
    assert (tmp_path / "records").stat().st_mode & 0o777 == 0o700


def test_damaged_record_is_none(bring, systemd, tmp_path, conf):
    bring()
    (tmp_path / "records/demo.json").write_text("{")
    systemd.start_after(conf)
    assert not bring()["changed"]
    assert json.loads((tmp_path / "records/demo.json").read_text())["invocation"] == systemd.invocation


def test_changed_service_of_a_timer_is_read_first(bring, systemd):
    """The timer's own file is as it was."""
    systemd.changed.add("work.service")
    files = ["/etc/systemd/system/demo.timer", "/etc/systemd/system/work.service", "/etc/elsewhere/other.service"]
    bring(files=files)
    assert systemd.done[0] == "daemon-reload"
    systemd.changed.add("other.service")
    bring(files=files)
    assert systemd.done.count("daemon-reload") == 1
