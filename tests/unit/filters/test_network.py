"""What a host must have for pod networks, and what Slurm is configured with for the plugin."""

import shutil
from ipaddress import IPv4Network

import pytest

from isthmus.filters.errors import InputError
from isthmus.filters.network.layer import (
    network_cni_places,
    network_copies,
    network_host_problems,
    network_plugin_is_due,
    network_plugin_key,
    network_plugin_words,
    network_prolog_problem,
    network_rules,
    network_session_rules,
    network_spank_problem,
)
from isthmus.network.node.filtering import read_rules
from tests.repo import tree

SPANK = tree.ROOT / "src/spank"


def facts(mtu=1500, device="eth0", address="10.231.0.10", prefix="24"):
    interface = {"device": device, "mtu": mtu, "ipv4": {"address": address, "prefix": prefix}}
    return {"interfaces": ["lo", device], device.replace("-", "_"): interface}


def problems(**interface):
    return network_host_problems(facts(**interface), "10.231.0.10", "10.64.0.0/10", 0)


def test_sessions_of_the_exempt_pass_over_the_module():
    assert network_session_rules("login", ["uid < 1000", "user ingroup sudo"]).splitlines() == [
        "account [success=2 default=ignore] pam_succeed_if.so quiet uid < 1000",
        "account [success=1 default=ignore] pam_succeed_if.so quiet user ingroup sudo",
        "account required /usr/lib/isthmus/pam_isthmus.so login",
        "session [success=2 default=ignore] pam_succeed_if.so quiet uid < 1000",
        "session [success=1 default=ignore] pam_succeed_if.so quiet user ingroup sudo",
        "session required /usr/lib/isthmus/pam_isthmus.so login",
    ]


def test_plain_host_is_a_member():
    assert problems() == []


@pytest.mark.parametrize(("carried", "wanted"), [(1500, 1450), (626, 0)])
def test_mtu_that_just_fits_is_taken(carried, wanted):
    assert network_host_problems(facts(mtu=carried), "10.231.0.10", "10.64.0.0/10", wanted) == []


@pytest.mark.parametrize(("carried", "wanted"), [(1500, 1451), (625, 0)])
def test_mtu_that_does_not_fit_is_refused(carried, wanted):
    (problem,) = network_host_problems(facts(mtu=carried), "10.231.0.10", "10.64.0.0/10", wanted)
    assert problem.startswith(f"eth0 carries {carried} bytes, {carried - 50} for a pod")


def test_host_without_the_clusters_address_is_refused():
    (problem,) = problems(address="192.0.2.1")
    assert problem.startswith("no interface has 10.231.0.10")


def test_site_network_within_the_pods_range_is_refused():
    found = facts() | {"interfaces": ["eth0", "eth-1"]} | {"eth_1": facts(device="eth-1", address="10.70.0.1")["eth_1"]}
    (problem,) = network_host_problems(found, "10.231.0.10", "10.64.0.0/10", 0)
    assert problem.startswith("eth-1 (10.70.0.1) lies in network_pod_range 10.64.0.0/10")


def test_leg_of_a_user_is_no_site_network():
    found = facts() | {
        "interfaces": ["eth0", "il4096"],
        "il4096": facts(device="il4096", address="10.64.0.1")["il4096"],
    }
    assert network_host_problems(found, "10.231.0.10", "10.64.0.0/10", 0) == []


def test_plugin_key_follows_source_slurm_and_release(tmp_path):
    copy = tmp_path / "spank"
    shutil.copytree(SPANK, copy)
    key = network_plugin_key(str(copy), "slurm 24.11.5", "13")
    assert key == network_plugin_key(str(SPANK), "slurm 24.11.5", "13")
    (copy / "hold/hold.c").write_text("")
    others = [(copy, "slurm 24.11.5", "13"), (SPANK, "slurm 25.05.0", "13"), (SPANK, "slurm 24.11.5", "12")]
    keys = {network_plugin_key(str(folder), *rest) for folder, *rest in others}
    assert len(keys) == 3
    assert key not in keys


def test_plugin_key_without_source_is_refused(tmp_path):
    with pytest.raises(InputError, match="has no source"):
        network_plugin_key(str(tmp_path), "slurm 24.11.5", "13")


@pytest.mark.parametrize(("pid_namespace", "init"), [(False, []), (True, ["init=/usr/lib/isthmus/isthmus_init"])])
def test_plugin_words_name_default_and_rules(pid_namespace, init):
    users = {"bob": "none", "alice": "private"}
    words = network_plugin_words("none", {"debug": "private"}, users, 30, "/opt/isthmus", pid_namespace)
    rules = ["partition=debug:private", "user=alice:private", "user=bob:none"]
    assert words == ["default=none", "timeout_s=30", "command=/opt/isthmus/bin/isthmus-step-container", *init, *rules]


USERS = [{"name": "alice", "uid": 1001}, {"name": "bob", "uid": "1002"}]
GETENT = "192.0.2.5      STREAM filer\n192.0.2.5      DGRAM\n2001:db8::5    STREAM\n"
GIVEN = {
    "admins": [],
    "slurm": ["6817-6819", ""],
    "services": [],
    "hosts": ["10.0.0.1"],
    "servers": GETENT,
    "bounds": {"flows": "9", "rate": 8, "dns": 5, "table": 7, "established_s": 6},
    "default": "allow",
}


def test_rule_for_users_becomes_one_for_each():
    rules = network_rules([{"action": "deny", "users": ["bob", "alice"], "ports": [25]}], USERS, GIVEN)
    rest = {"action": "deny", "to": "0.0.0.0/0", "protocol": "any", "ports": ["25"]}
    assert rules["egress"] == [{**rest, "uid": 1002}, {**rest, "uid": 1001}]


def test_rule_for_everybody_has_no_uid():
    rules = network_rules([{"action": "allow", "to": "192.0.2.0/24", "users": []}], USERS, GIVEN)
    assert rules["egress"] == [{"action": "allow", "to": "192.0.2.0/24", "protocol": "any", "ports": [], "uid": None}]


def test_rules_are_those_that_the_daemon_reads():
    given = GIVEN | {"admins": ["bob"], "services": [{"protocol": "udp", "port": 123}]}
    read = read_rules(IPv4Network("10.64.0.0/10"), network_rules([{"action": "deny", "protocol": "tcp"}], USERS, given))
    assert read.admins == {1002}
    assert [str(ports) for ports in read.slurm] == ["6817-6819"]
    assert [(str(each.protocol), str(each.ports)) for each in read.services] == [("udp", "123")]
    assert read.hosts == (IPv4Network("10.0.0.1/32"),)
    assert read.servers == (IPv4Network("192.0.2.5/32"),)
    assert (read.bounds.flows, read.bounds.rate, read.bounds.dns) == (9, 8, 5)
    assert [(rule.action, rule.protocol, rule.uid) for rule in read.egress] == [("deny", "tcp", None)]


def test_rule_of_an_unknown_user_is_refused():
    with pytest.raises(InputError, match="'bop'"):
        network_rules([{"action": "deny", "users": ["bop"]}], USERS, GIVEN)


@pytest.mark.parametrize(
    ("flags", "drivers"),
    [("Alloc", ["private"]), ("Contain,X11", ["private"]), ("(null)", ["none", "none"]), ("(null)", [])],
)
def test_prolog_that_comes_in_time_is_taken(flags, drivers):
    assert network_prolog_problem(f"Prolog = x\nPrologFlags             = {flags}\n", drivers) == ""


def test_silent_slurm_is_not_judged():
    assert network_prolog_problem("", ["private"]) == ""


@pytest.mark.parametrize("flags", ["(null)", "NoHold", "Serial,X11"])
def test_prolog_that_comes_too_late_is_refused(flags):
    problem = network_prolog_problem(f"PrologFlags             = {flags} \n", ["none", "private"])
    assert problem.startswith(f"PrologFlags is {flags}, and jobs that say nothing get network private")
    assert "set PrologFlags=Contain" in problem


@pytest.mark.parametrize(
    ("parameters", "wanted", "begins"),
    [
        ("(null)", True, ""),
        ("config_overrides", True, ""),
        ("config_overrides,contain_spank", False, ""),
        (
            "config_overrides,Contain_SPANK",
            True,
            "network_pid_namespace is true, and SlurmdParameters has contain_spank",
        ),
    ],
)
def test_plugins_that_cannot_move_tasks_are_refused_where_they_should(parameters, wanted, begins):
    problem = network_spank_problem(f"SlurmdParameters        = {parameters}\n", pid_namespace=wanted)
    assert problem.startswith(begins)
    assert bool(problem) == bool(begins)
    assert network_spank_problem("", pid_namespace=wanted) == ""


@pytest.mark.parametrize(
    ("status", "paths", "due"),
    [
        ('{"plugin": "loaded"}', [], False),
        ('{"plugin": "no slurmd runs here"}', ["/other"], False),
        ('{"plugin": "loaded"}', ["/plugin"], True),
        ('{"plugin": "not loaded by slurmd"}', [], True),
        ("", [], True),
    ],
)
def test_slurmd_looks_for_the_plugin_where_it_lacks_it_or_a_file_changed(status, paths, due):
    quiet = {"__network_state": {"status": '{"plugin": "loaded"}'}}
    reported = {"__network_state": {"status": status}, "__network_copied": {"paths": paths}}
    assert network_plugin_is_due(["c1", "c2"], {"c1": quiet, "c2": reported}, ["/plugin"]) is due


def test_programs_are_brought_to_their_places_and_those_not_obtained_are_left():
    places = {"/coredns": "coredns"} | network_cni_places(["cni-bridge"], "/cni")
    assert network_copies({"cni-bridge": {"path": "/cache/b"}}, places) == [
        {"src": "/cache/b", "dest": "/cni/bridge", "mode": "0755"}
    ]
