"""Jobs in the site's own network: addresses, what users cannot say to plugins, and a list that is wrong.

What every network that users share has is in test_shared_networks.
"""

import json
from ipaddress import IPv4Address, IPv4Network

import pytest

from tests.support.clusters import jobs
from tests.support.wait import wait
from tests.system.network.conftest import PORT, pods
from tests.system.network.left_of_pods import left
from tests.system.network.test_spank import CHOOSE
from tests.system.network.test_spank_dead import MISSED

OWN = "--pod-network=cni"
KEPT = "/root/isthmus-test-kept.conflist"
# What an admin may do wrong -> how, and what the user reads.
WRONG = {
    "no JSON": ("echo '{' >LIST", "it is no JSON"),
    "everybody may write": ("chmod o+w LIST", "may be written by others than root; run chmod go-w"),
    "no such plugin": ('sed -i \'0,/"type": *"[^"]*"/s//"type": "nosuch"/\' LIST', "install the plugin"),
}


@pytest.fixture(scope="module", autouse=True)
def offered(controller):
    """The site has it."""
    if "cni" not in controller.variables["network_drivers"]:
        pytest.skip("jobs of this site cannot have a network of the site's own: network_drivers")


@pytest.fixture(scope="module")
def site(offered, two_computes):
    """What the daemon knows of it."""
    return json.loads(two_computes[0].output("cat /etc/isthmus/network.json"))["cni"]


@pytest.fixture(scope="module")
def path(site):
    """Of the list."""
    return f"{site['folder']}/{site['list']}"


@pytest.fixture(scope="module")
def option(offered):
    """Of a job in it."""
    return OWN


def test_pod_has_an_address_of_the_sites_range(shared, site):
    addresses = [pod.address for job in shared for pod in job.values()]
    assert len(set(addresses)) == len(addresses)
    for pod in (pod for job in shared for pod in job.values()):
        assert IPv4Address(pod.address) in IPv4Network(site["range"])
        assert f" {pod.address}/" in pod.run("ip -4 -o address show eth0")


def test_pod_has_no_rights_over_its_network(shared, two_computes):
    pod = shared[0][two_computes[0].name]
    assert pod.run("ls /sys/class/net").split() == ["eth0", "lo"]
    assert pod.try_run("ip address add 10.180.9.9/32 dev eth0").rc != 0


@pytest.fixture(scope="module")
def chosen(shared, two_computes, site, path):
    """An address that nobody has, and that the plugin gives to who names it in its arguments."""
    near = two_computes[0]
    pod = shared[0][near.name]
    ipam = json.loads(near.output(f"cat {path}"))["plugins"][0].get("ipam", {})
    if ipam.get("type") != "host-local":
        pytest.skip("only of the plugin host-local it is known which arguments it takes")
    wanted, folder = str(IPv4Address(pod.address) + 50), "/tmp/isthmus-test-leases"
    given = json.dumps({"cniVersion": "1.0.0", "name": "test", "ipam": {**ipam, "dataDir": folder}})
    words = f"CNI_COMMAND=ADD CNI_CONTAINERID=test CNI_IFNAME=eth0 CNI_NETNS=/run/netns/isthmus-cni-{pod.job}"
    plugin = f"CNI_PATH={site['plugins']} CNI_ARGS=IP={wanted} {site['plugins']}/host-local"
    assert f'"{wanted}/' in near.output(f"{words} {plugin} <<'END'\n{given}\nEND")
    near.output(f"rm -rf {folder}")
    return wanted


def test_users_environment_and_names_are_no_arguments_of_plugins(chosen, login, controller, user, two_computes, path):
    near = two_computes[0]
    variables = f"CNI_ARGS=IP={chosen} CAP_ARGS=IP={chosen} CNI_IFNAME=net9 CNI_CONTAINERID=mine"
    options = f"{OWN} --nodelist={near.name} --mem=50 --job-name=IP={chosen} --comment=IP={chosen} --export=ALL"
    job = jobs.submit(login, user, options, "echo $CNI_ARGS; sleep 300", variables)
    try:
        assert wait(lambda: jobs.written(login, user, job)).strip() == f"IP={chosen}"
        (pod,) = pods(login, user, job, [near.name]).values()
        assert pod.address != chosen
        assert pod.run("ls /sys/class/net").split() == ["eth0", "lo"]
        noted = json.loads(near.output(f"cat /var/lib/isthmus/cni/{job}.json"))
        assert noted["network"]["plugins"] == json.loads(near.output(f"cat {path}"))["plugins"]
        assert chosen not in json.dumps(noted)
    finally:
        jobs.cancel(controller, job)


@pytest.mark.parametrize("more", [",IP=10.180.1.9", ":other.conflist", "/../other"])
def test_option_with_more_than_the_networks_name_is_refused(login, user, more):
    # Slurm's commands end with 255 here, which is ssh's own word for a lost connection.
    refused = login.try_as(user, f"srun {OWN}{more} true || exit 1")
    assert refused.rc == 1
    assert f"isthmus: {OWN}{more}: {CHOOSE}" in refused.stderr


@pytest.fixture(params=WRONG)
def wrong(request, two_computes, path):
    """A list that cannot be used, on one node, until the test has ended; and what is said of it."""
    near = two_computes[0]
    change, said = WRONG[request.param]
    near.output(f"cp --preserve=all {path} {KEPT}")
    try:
        near.output(change.replace("LIST", path))
        assert near.run(f"test $(stat -c %a {path}) = $(stat -c %a {KEPT}) && cmp {path} {KEPT}").rc != 0
        yield said
    finally:
        near.output(f"mv {KEPT} {path}")


@pytest.mark.disruptive
def test_wrong_list_fails_jobs_that_ask_for_it_with_the_reason(
    shared, wrong, login, controller, user, two_computes, probe
):
    near, far = two_computes
    before = left(near, "cni")
    job = jobs.submit(login, user, f"{OWN} --nodelist={near.name} --mem=20", "echo it ran")
    jobs.wait_for_job(controller, job, "FAILED")
    said = jobs.output(login, user, job)
    assert MISSED.format(job=job, node=near.name) in said
    assert wrong in said
    assert "it ran" not in said
    # Others do not notice: networks of other drivers, the node itself, and pods that are there.
    assert login.run_as(user, f"srun --pod-network --nodelist={near.name} --mem=20 hostname") == near.name
    jobs.wait_for_nodes(controller, near.name)
    shared[0][near.name].run(f"{probe} tcp {shared[0][far.name].address} {PORT}")
    wait(lambda: left(near, "cni"), lambda left: left <= before)


@pytest.mark.disruptive
def test_right_list_serves_again_and_no_error_is_left(login, user, two_computes):
    near = two_computes[0]
    assert login.run_as(user, f"srun {OWN} --nodelist={near.name} --mem=20 hostname") == near.name
    wait(lambda: json.loads(near.output("isthmus network status --json"))["errors"], lambda left: left == {})
