"""Jobs in a network that all users share: who reaches whom, names, and what is left of ended ones.

It is Flannel's, or the site's own; molecule's scenario `network` brings such a one as docs/admins/cni.md says.
"""

import pytest

from tests.support.clusters import jobs
from tests.support.wait import wait
from tests.system.network.conftest import PORT
from tests.system.network.left_of_pods import left
from tests.system.network.test_daemon import kill
from tests.system.network.test_isolation import KINDS, ask
from tests.system.network.test_names import domain, resolve  # noqa: F401 -- a fixture

# What a node has of a pod: a namespace, a record, an address and the end of a wire.
THINGS = 4


@pytest.fixture(scope="module", params=["cni", "flannel"], autouse=True)
def driver(request, controller):
    """One that the site has."""
    if request.param not in controller.variables["network_drivers"]:
        pytest.skip(f"jobs of this site cannot have the network of driver {request.param}: network_drivers")
    return request.param


@pytest.fixture(scope="module")
def option(driver):
    """Of a job in it."""
    return f"--pod-network={driver}"


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
    own, private = shared[0], serving[0]
    for near in (node.name for node in two_computes):
        for far in (node.name for node in two_computes):
            own[near].run(ask(probe, "tcp", own[far].address))
            private[near].run(ask(probe, "tcp", private[far].address))
            assert own[near].try_run(ask(probe, "tcp", private[far].address)).rc != 0
            assert private[near].try_run(ask(probe, "tcp", own[far].address)).rc != 0


def test_host_processes_reach_pods(shared, two_computes, controller, user, other_user, probe):
    for host in (two_computes[0], controller):
        for who in (user, other_user):
            for pod in shared[0].values():
                assert host.try_as(who, ask(probe, "tcp", pod.address)).rc == 0


def test_pod_reaches_neither_etcd_nor_sshd_nor_metadata(shared, two_computes, controller, probe):
    pod = shared[0][two_computes[0].name]
    own = two_computes[0].output("ip -4 -o address | awk '{print $4}' | cut -d/ -f1 | grep -v ^127").split()
    for address in (controller.variables["base_address"], *own):
        for port in (22, 2379):
            assert pod.try_run(f"{probe} tcp {address} {port}").rc != 0
    assert pod.try_run(f"{probe} tcp 169.254.169.254 80").rc != 0


def test_pod_resolves_names_of_its_network(shared, two_computes, other_user, domain):  # noqa: F811
    near, far = (node.name for node in two_computes)
    mine, theirs = shared
    wait(lambda: resolve(mine[near], "pod1"), lambda seen: seen == [mine[far].address])
    name = f"pod0.{theirs[near].job}.{other_user}.{domain}"
    wait(lambda: resolve(mine[near], name), lambda seen: seen == [theirs[near].address])


def test_pod_resolves_no_name_of_a_private_network(shared, serving, two_computes, user, domain):  # noqa: F811
    near = two_computes[0].name
    name = f"{serving[0][near].job}.{user}.{domain}"
    wait(lambda: resolve(serving[0][near], name), lambda seen: len(seen) == 2)
    assert resolve(shared[0][near], name) == []


@pytest.mark.disruptive
def test_live_pods_survive_the_daemons_death(shared, two_computes, probe, driver):
    near, far = two_computes
    before = left(near, driver)
    kill(near)
    for pods_of in shared:
        pods_of[near.name].run(f"{probe} tcp {pods_of[far.name].address} {PORT}")
        pods_of[far.name].run(f"{probe} tcp {pods_of[near.name].address} {PORT}")
    assert left(near, driver) == before


@pytest.mark.disruptive
def test_job_that_ends_while_the_daemon_is_dead_leaves_nothing(login, controller, user, two_computes, driver, option):
    near = two_computes[0]
    before = left(near, driver)
    job = jobs.submit(login, user, f"{option} --nodelist={near.name} --mem=20", "sleep 600")
    jobs.wait_for_job(controller, job, "RUNNING")
    wait(lambda: left(near, driver) - before, lambda made: len(made) >= THINGS)
    near.output("systemctl stop isthmus-networkd")
    try:
        jobs.cancel(controller, job)
        assert left(near, driver) - before
    finally:
        near.output("systemctl start isthmus-networkd")
    wait(lambda: left(near, driver), lambda now: now <= before)


def test_nothing_is_left_after_jobs_came_and_went(login, controller, user, other_user, two_computes, driver, option):
    before = {node.name: left(node, driver) for node in two_computes}
    options = f"{option} --nodes=2 --ntasks-per-node=1 --mem=20"
    started = [jobs.submit(login, who, options, "srun true") for _ in range(5) for who in (user, other_user)]
    for job in started:
        jobs.wait_for_job(controller, job, "COMPLETED", timeout_s=180)
    for node in two_computes:
        wait(lambda node=node: left(node, driver), lambda now, node=node: now <= before[node.name])
