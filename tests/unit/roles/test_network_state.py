"""The module network_state: it reports a host as it is, and "" for what does not answer."""

import grp
import os
from pathlib import Path

import pytest

from tests.support import ansible_modules

LOADED = '{"plugin": "loaded"}'


@pytest.fixture
def look(monkeypatch, tmp_path):
    """Ask a host of which everything is below tmp_path."""
    module = ansible_modules.load("roles/network/library/network_state.py")
    monkeypatch.setattr(module, "RESOLV_CONF", tmp_path / "resolv.conf")
    monkeypatch.setattr(module, "FORWARD", tmp_path / "ip_forward")
    monkeypatch.setattr(module, "IPV6", tmp_path / "ipv6")
    places = {name: str(tmp_path / name) for name in ("slurm", "prefix", "openmpi", "sysctl", "pam", "wireguard")}
    asked = places | {"user": "nobody-has-this-name", "folders": [], "drivers": {"one": str(tmp_path / "one.service")}}
    return lambda **other: ansible_modules.run(module, **asked | other)


def program(path, prints):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\necho '{prints}'\n")
    path.chmod(0o755)


def test_new_host_has_nothing(look):
    reported = look(asks_slurm=True)
    assert [reported[name] for name in ("slurm", "slurm_config", "status", "servers", "resolv_conf", "openmpi")] == [
        ""
    ] * 6
    assert not (reported["drivers"] or reported["forwards"] or reported["has_user"] or reported["changed"])


def test_kernel_has_ipv6_or_not(look, tmp_path):
    assert look()["ipv6"] is False
    (tmp_path / "ipv6").mkdir()
    assert look()["ipv6"] is True


def test_driver_is_there_by_its_mark(look, tmp_path):
    marks = {name: str(tmp_path / f"{name}.service") for name in ("two", "one", "none")}
    for name in ("one", "two"):
        Path(marks[name]).touch()
    assert look(drivers=marks)["drivers"] == ["one", "two"]


def test_programs_are_asked_where_they_are(look, tmp_path):
    program(tmp_path / "slurm/bin/sinfo", "slurm-wlm 24.11.5")
    program(tmp_path / "slurm/bin/scontrol", "PrologFlags = Contain")
    program(tmp_path / "prefix/bin/isthmus", LOADED)
    reported = look(asks_slurm=True)
    assert (reported["slurm"], reported["slurm_config"], reported["status"]) == (
        "slurm-wlm 24.11.5",
        "PrologFlags = Contain",
        LOADED,
    )
    assert look()["slurm_config"] == ""


@pytest.mark.parametrize(
    ("live", "kept", "both"),
    [("1", "net.ipv4.ip_forward=1\n", True), ("0", "net.ipv4.ip_forward=1\n", False), ("1", "", False)],
)
def test_packets_are_handed_on_now_and_after_a_boot(look, tmp_path, live, kept, both):
    (tmp_path / "ip_forward").write_text(f"{live}\n")
    (tmp_path / "sysctl").write_text(kept)
    assert look()["forwards"] is both


@pytest.mark.skipif(os.geteuid() != 0, reason="folders are root's")
@pytest.mark.parametrize(("mode", "right"), [("2750", True), ("0755", False)])
def test_folders_are_right_with_their_mode(look, tmp_path, mode, right):
    folder = tmp_path / "dns"
    folder.mkdir()
    folder.chmod(0o2750)
    wanted = [{"path": str(folder), "group": grp.getgrgid(folder.stat().st_gid).gr_name, "mode": mode}]
    assert look(folders=wanted)["folders"] is right
    assert not look(folders=[*wanted, {"path": str(tmp_path / "none"), "group": "root", "mode": "0755"}])["folders"]


def test_name_of_the_file_server_that_nobody_knows_ends_the_task(look):
    reported = look(server="no-such-host.invalid")
    assert reported["failed"]
    assert "base_home_nfs_source" in reported["msg"]
    assert "127.0.0.1" in look(server="127.0.0.1")["servers"]


def test_wireguard_is_tried_only_where_it_is_asked_for(look, tmp_path):
    (tmp_path / "wireguard").touch()
    assert look()["wireguard"] == {"unit": True}
    asked = look(asks_wireguard=True)["wireguard"]
    assert set(asked) == {"unit", "kernel", "error", "tun"}
    assert asked["kernel"] is not bool(asked["error"])


def test_list_of_plugins_is_looked_at_with_all_that_leads_to_it(look, tmp_path):
    asked = {"folder": str(tmp_path / "net.d"), "list": "a.conflist", "plugins": str(tmp_path / "bin")}
    assert look()["plugin_list"] == {}
    assert look(plugin_list=asked)["plugin_list"]["text"] is None
    assert look(plugin_list=asked)["plugin_list"]["programs"] == {}
    program(tmp_path / "bin/bridge", "")
    (tmp_path / "net.d").mkdir(mode=0o700)
    (tmp_path / "net.d/a.conflist").write_text("{}" + " " * 70_000)
    reported = look(plugin_list=asked)["plugin_list"]
    assert reported["text"] == "{}" + " " * 65_535
    assert {"/", str(tmp_path), f"{tmp_path}/net.d", f"{tmp_path}/net.d/a.conflist"} <= reported["way"].keys()
    assert reported["programs"] == {f"{tmp_path}/bin/bridge": [os.getuid(), 0o100755]}
    (tmp_path / "net.d/a.conflist").unlink()
    (tmp_path / "net.d/a.conflist").symlink_to(tmp_path / "bin/bridge")
    assert look(plugin_list=asked)["plugin_list"]["text"] is None
