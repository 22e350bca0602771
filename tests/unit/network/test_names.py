"""The files that CoreDNS and pods read."""

from dataclasses import replace
from ipaddress import IPv4Address, IPv4Network

import pytest

from isthmus.model.network import Attachment, Driver, Job, Node, State, User
from isthmus.model.node_network import SharedPod
from isthmus.network.dns.hostresolver import HostResolver
from isthmus.network.dns.names import NodeNames
from isthmus.network.dns.records import DnsSettings
from isthmus.network.drivers.private.plan import desired


def state(*jobs):
    nodes = {"c1": Node("c1", IPv4Address("10.0.0.1"))}
    legs = {"c1": IPv4Address("10.64.0.1")} if jobs else {}
    alice = User(1001, "alice", 4096, (IPv4Network("10.64.0.0/24"),), legs)
    known = {job: Job(job, 1001, "run", Driver.PRIVATE, ("c1",), (IPv4Address("10.64.0.0") + job,)) for job in jobs}
    return State(nodes, {1001: alice}, known)


@pytest.fixture
def follow(tmp_path):
    """Bring the files to a state; return their names, and count the reloads."""
    reloads = []
    names = NodeNames(DnsSettings("cl", folder=tmp_path), lambda: reloads.append(1), resolv_conf=tmp_path / "none")

    def call(now):
        names.follow(desired(now, "c1"), now)
        return sorted(path.name for path in tmp_path.iterdir()), len(reloads)

    return call


def test_node_without_pods_has_names_for_the_host_alone(follow):
    assert follow(state()) == (["Corefile", "all.hosts"], 1)


def test_first_pod_of_a_user_reloads_and_the_next_does_not(follow):
    follow(state())
    assert follow(state(7)) == (["1001.hosts", "7.resolv", "Corefile", "all.hosts"], 2)
    assert follow(state(7, 8)) == (["1001.hosts", "7.resolv", "8.resolv", "Corefile", "all.hosts"], 2)


def test_last_pod_takes_its_files_along(follow):
    follow(state(7))
    assert follow(state()) == (["Corefile", "all.hosts"], 2)


def test_pods_of_flannel_have_names_once_they_exist(tmp_path):
    names = NodeNames(DnsSettings("cl", folder=tmp_path), lambda: None)
    shared = Job(9, 1001, "run", Driver.FLANNEL, ("c1",), ())
    now = replace(state(), jobs={9: shared}, attachments={(9, "c1"): Attachment(9, "c1", IPv4Address("10.128.1.2"))})
    pods = {9: SharedPod(Driver.FLANNEL, 9, 1001, IPv4Address("10.128.1.2"), IPv4Address("10.128.1.1"))}
    names.follow(replace(desired(now, "c1"), shared=pods), now)
    assert "pod0.9.alice.cl" in (tmp_path / "flannel.hosts").read_text()
    assert (tmp_path / "9.resolv").read_text().startswith("nameserver 10.128.1.1\nsearch 9.alice.cl alice.cl")
    names.follow(replace(desired(now, "c1"), shared=pods), replace(now, jobs={}))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["Corefile", "all.hosts"]


def test_names_are_read_by_the_group_alone(follow, tmp_path):
    follow(state(7))
    assert (tmp_path / "1001.hosts").stat().st_mode & 0o777 == 0o640
    assert (tmp_path / "7.resolv").stat().st_mode & 0o777 == 0o644


def test_file_of_a_killed_daemon_is_replaced(follow, tmp_path):
    (tmp_path / "1001.hosts").write_text("10.9.9.9 old\n")
    follow(state(7))
    assert "old" not in (tmp_path / "1001.hosts").read_text()


def test_servers_of_the_host_are_followed_and_ours_is_put_before_them(tmp_path):
    resolv_conf, reloads = tmp_path / "resolv.conf", []
    (tmp_path / "dns").mkdir()
    settings = DnsSettings("cl", folder=tmp_path / "dns")
    names = NodeNames(settings, lambda: reloads.append(1), HostResolver.RESOLV_CONF, resolv_conf)
    for number, server in enumerate(("192.0.2.53", "192.0.2.54"), 1):
        resolv_conf.write_text(f"nameserver {server}\n")
        for _ in range(2):
            names.follow(desired(state(), "c1"), state())
        assert resolv_conf.read_text() == f"nameserver 127.0.0.153\nnameserver {server}\n"
        assert f"forward . {server} {{" in (tmp_path / "dns/Corefile").read_text()
        assert len(reloads) == number


def test_reload_that_failed_is_tried_again(tmp_path):
    answers = iter([OSError("no"), None])

    def reload():
        error = next(answers)
        if error:
            raise error

    names = NodeNames(DnsSettings("cl", folder=tmp_path), reload)
    with pytest.raises(OSError, match="no"):
        names.follow(desired(state(), "c1"), state())
    names.follow(desired(state(), "c1"), state())
    assert next(answers, "used up") == "used up"
