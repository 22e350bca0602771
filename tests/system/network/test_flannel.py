"""Jobs in Flannel's network: who reaches whom, names, and what is left of ended ones."""

import pytest

from tests.support.clusters import jobs
from tests.support.wait import wait
from tests.system.network.conftest import PORT, served
from tests.system.network.test_daemon import kill
from tests.system.network.test_isolation import KINDS, ask
from tests.system.network.test_names import domain, resolve  # noqa: F401 -- a fixture

FLAT = "--pod-network=flannel"


@pytest.fixture(scope="module", autouse=True)
def offered(controller):
    """The site has it."""
    if "flannel" not in controller.variables["network_drivers"]:
        pytest.skip("jobs of this site cannot have Flannel's network: network_drivers")


@pytest.fixture(scope="module")
def shared(offered, login, controller, user, other_user, two_computes, probe):
    """A job of each of two users on both nodes; node -> pod that serves."""
    names = [node.name for node in two_computes]
    with served(login, controller, (user, other_user), FLAT, names, probe) as found:
        yield found


def leftovers(node):
    """What a node still has of pods."""
    namespaces = node.run("ls /run/netns | grep ^isthmus-flannel-").stdout.split()
    records = node.run(
        "ls /run/isthmus/flannel /run/isthmus/cni/flannel 2>/dev/null | grep '[0-9]$\\|json$'"
    ).stdout.split()
    addresses = node.run("find /run/isthmus/cni/networks -name '*.*.*.*' 2>/dev/null").stdout.split()
    ports = node.run("ip -o link show master iflannel 2>/dev/null").stdout.splitlines()
    return [*namespaces, *records, *addresses, *ports]


@pytest.mark.parametrize("kind", KINDS)
def test_pod_reaches_every_pod_of_the_network(shared, two_computes, probe, kind):
    near, far = (node.name for node in two_computes)
    mine, theirs = shared
    for target in (mine[far], theirs[near], theirs[far]):
        mine[near].run(ask(probe, kind, target.address))


def test_pod_sees_the_address_of_the_pod_that_asks(shared, two_computes, probe):
    near, far = (node.name for node in two_computes)
    reported = shared[0][near].run(ask(probe, "tcp", shared[0][far].address))
    assert reported.split()[1] == shared[0][near].address


def test_shared_and_private_pods_do_not_reach_each_other(shared, serving, two_computes, probe):
    for near in (node.name for node in two_computes):
        for far in (node.name for node in two_computes):
            assert shared[0][near].try_run(ask(probe, "tcp", serving[0][far].address)).rc != 0
            assert serving[0][near].try_run(ask(probe, "tcp", shared[0][far].address)).rc != 0


def test_host_processes_reach_pods(shared, two_computes, user, other_user, probe):
    for who in (user, other_user):
        for pod in shared[0].values():
            assert two_computes[0].try_as(who, ask(probe, "tcp", pod.address)).rc == 0


def test_pod_reaches_neither_etcd_nor_sshd_nor_metadata(shared, two_computes, controller, probe):
    pod = shared[0][two_computes[0].name]
    own = two_computes[0].output("ip -4 -o address | awk '{print $4}' | cut -d/ -f1 | grep -v ^127").split()
    for address in (controller.variables["base_address"], *own):
        for port in (22, 2379):
            assert pod.try_run(f"{probe} tcp {address} {port}").rc != 0
    assert pod.try_run(f"{probe} tcp 169.254.169.254 80").rc != 0


def test_pod_resolves_names_of_its_network(shared, two_computes, user, other_user, domain):  # noqa: F811
    near, far = (node.name for node in two_computes)
    mine, theirs = shared
    wait(lambda: resolve(mine[near], "pod1"), lambda seen: seen == [mine[far].address])
    name = f"pod0.{theirs[near].job}.{other_user}.{domain}"
    wait(lambda: resolve(mine[near], name), lambda seen: seen == [theirs[near].address])


def test_pod_resolves_no_name_of_a_private_network(shared, serving, two_computes, user, domain):  # noqa: F811
    near = two_computes[0].name
    assert resolve(shared[0][near], f"{serving[0][near].job}.{user}.{domain}") == []


@pytest.mark.disruptive
def test_live_pods_survive_the_daemons_and_flannelds_death(shared, two_computes, probe):
    near, far = two_computes
    mine = shared[0]
    subnet = near.output("cat /run/flannel/subnet.env")
    kill(near)
    kill(near, "isthmus-flanneld")
    assert near.output("cat /run/flannel/subnet.env") == subnet
    mine[near.name].run(f"{probe} tcp {mine[far.name].address} {PORT}")
    mine[far.name].run(f"{probe} tcp {mine[near.name].address} {PORT}")


@pytest.mark.disruptive
def test_job_that_ends_while_the_daemon_is_dead_leaves_nothing(login, controller, user, two_computes):
    near = two_computes[0]
    before = set(leftovers(near))
    job = jobs.submit(login, user, f"{FLAT} --nodelist={near.name} --mem=20", "sleep 600")
    jobs.wait_for_job(controller, job, "RUNNING")
    near.output("systemctl stop isthmus-networkd")
    try:
        jobs.cancel(controller, job)
    finally:
        near.output("systemctl start isthmus-networkd")
    wait(lambda: set(leftovers(near)), lambda left: left <= before)


def test_nothing_is_left_after_jobs_came_and_went(login, controller, user, other_user, two_computes):
    before = {node.name: set(leftovers(node)) for node in two_computes}
    options = f"{FLAT} --nodes=2 --ntasks-per-node=1 --mem=20"
    started = [jobs.submit(login, who, options, "srun true") for _ in range(5) for who in (user, other_user)]
    for job in started:
        jobs.wait_for_job(controller, job, "COMPLETED", timeout_s=180)
    for node in two_computes:
        wait(lambda node=node: set(leftovers(node)), lambda left, node=node: left <= before[node.name])
