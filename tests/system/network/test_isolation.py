"""Who reaches whom."""

import pytest

from tests.support.clusters import jobs
from tests.system.network.conftest import PORT

KINDS = ["tcp", "udp", "icmp"]


def ask(probe, kind, address):
    return f"{probe} {kind} {address}" + ("" if kind == "icmp" else f" {PORT}")


@pytest.mark.parametrize("kind", KINDS)
def test_pod_reaches_pods_of_its_user(serving, two_computes, probe, kind):
    near, far = (node.name for node in two_computes)
    mine, second, _ = serving
    for target in (mine[far], second[near], second[far]):
        mine[near].run(ask(probe, kind, target.address))


@pytest.mark.parametrize("kind", KINDS)
def test_pod_does_not_reach_pods_of_others(serving, two_computes, probe, kind):
    near, far = (node.name for node in two_computes)
    mine, _, theirs = serving
    for target in (theirs[near], theirs[far]):
        assert mine[near].try_run(ask(probe, kind, target.address)).rc != 0


@pytest.mark.parametrize("kind", ["tcp", "udp"])
def test_host_process_reaches_pods_of_its_own_user_alone(serving, two_computes, user, other_user, probe, kind):
    host = two_computes[0]
    for pod in serving[0].values():
        assert host.try_as(user, ask(probe, kind, pod.address)).rc == 0
        assert host.try_as(other_user, ask(probe, kind, pod.address)).rc != 0


def test_root_reaches_every_pod(serving, two_computes, probe):
    for job in serving:
        for pod in job.values():
            two_computes[0].output(ask(probe, "tcp", pod.address))


def test_pod_sees_the_address_of_the_pod_that_asks(serving, two_computes, probe):
    near, far = (node.name for node in two_computes)
    mine = serving[0]
    assert mine[near].run(ask(probe, "tcp", mine[far].address)).split()[1] == mine[near].address


def test_pod_reaches_neither_etcd_nor_sshd_of_hosts(serving, two_computes, controller, probe):
    pod = serving[0][two_computes[0].name]
    for port in (22, 2379, 2380):
        assert pod.try_run(f"{probe} tcp {controller.variables['base_address']} {port}").rc != 0


def test_pod_reaches_no_service_of_its_node_by_any_address(serving, two_computes, probe):
    host = two_computes[0]
    pod = serving[0][host.name]
    legs = host.output("ip -4 -o address | awk '{print $4}' | cut -d/ -f1 | grep -v ^127").split()
    for address in legs:
        assert pod.try_run(f"{probe} tcp {address} 22").rc != 0


def test_pod_does_not_reach_the_metadata_address(serving, two_computes, probe):
    pod = serving[0][two_computes[0].name]
    assert pod.try_run(f"{probe} tcp 169.254.169.254 80").rc != 0


def test_pod_has_loopback_and_one_interface(serving, two_computes):
    pod = serving[0][two_computes[0].name]
    assert pod.run("ls /sys/class/net").split() == ["eth0", "lo"]


def test_pod_has_no_rights_over_its_network(serving, two_computes):
    pod = serving[0][two_computes[0].name]
    assert pod.try_run("ip link set eth0 address 0a:58:0a:40:00:99").rc != 0
    assert pod.try_run("ip address add 10.64.9.9/32 dev eth0").rc != 0


def test_user_forges_no_vxlan(serving, two_computes, user, probe):
    near, far = two_computes
    sent = near.try_as(user, f"{probe} udp {far.variables['base_address']} 4789")
    assert "PermissionError" in sent.stderr or sent.rc != 0
    dropped = near.output("nft list chain inet isthmus output")
    assert "4789" in dropped


def test_job_without_the_option_has_the_hosts_network(login, controller, user, two_computes):
    reported = login.run_as(user, "srun --mem=20 ls /sys/class/net").split()
    assert "eth0" in reported
    job = jobs.submit(login, user, "--mem=20", "readlink /proc/self/ns/net")
    jobs.wait_for_job(controller, job, "COMPLETED")
    assert jobs.output(login, user, job) in [node.output("readlink /proc/self/ns/net") for node in two_computes]
