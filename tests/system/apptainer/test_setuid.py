"""Networks that Apptainer's setuid starter gives to users' containers, and what it must give to nobody."""

from pathlib import PurePosixPath

import pytest

from tests.support.clusters import jobs
from tests.support.wait import wait

NETWORKS = "/etc/isthmus/apptainer-networks"
LEASES = "/var/lib/cni/networks/bridge"
FLANNEL = "--network flannel"
SHOW = "sh -c 'ip -4 -o addr; sleep 2'"
NEEDS_SETUID = "network requires root or a suid installation"
REFUSED = {
    "unlisted network": ("--network ptp", "Network ptp is not permitted for unprivileged users"),
    "user namespace": ("--userns --network bridge", NEEDS_SETUID),
    "fakeroot": ("--fakeroot --network bridge", 'no net configuration with name "fakeroot"'),
}


@pytest.fixture(scope="module")
def setuid(controller):
    """The variable is on."""
    if not controller.variables["apptainer_setuid"]:
        pytest.skip("Apptainer of this site has no setuid starter: apptainer_setuid is false")


@pytest.fixture(scope="module")
def image(login, user, references):
    """A container with a shell, in the user's cache."""
    return login.run_as(user, f"isthmus pull {references['busybox']}")


@pytest.fixture(scope="module")
def starter(computes, setuid):
    """Where the setuid starter is."""
    return computes[0].output("dpkg --listfiles apptainer | grep /starter-suid$")


@pytest.fixture
def stranger(cluster, setuid):
    """A user who may have no network."""
    allowed = cluster.controller.variables["apptainer_net_users"]
    outside = [name for name in cluster.users if name not in (cluster.users if allowed is None else allowed)]
    if not outside:
        pytest.skip("apptainer_net_users has every user of the site")
    return outside[0]


def inside(image, command=SHOW, network="--network bridge", options="--silent"):
    return f"apptainer {options} exec --net {network} {image} {command}"


def refusal(node, user, command):
    """What a command that must fail says; Apptainer's own status, 255, looks like a lost connection."""
    refused = node.try_as(user, f"{command} || exit 1")
    assert refused.rc == 1
    return refused.stderr


def addresses(shown):
    """Interface -> address, of what `ip -4 -o addr` printed."""
    words = [line.split() for line in shown.splitlines()]
    return {line[1]: line[3].split("/")[0] for line in words}


def leases(node):
    return node.output(f"find {LEASES} -name '*.*.*.*' 2>/dev/null || true").split()


def test_without_setuid_there_is_no_network(login, controller, user, image):
    if controller.variables["apptainer_setuid"]:
        pytest.skip("Apptainer of this site has its setuid starter: apptainer_setuid is true")
    assert NEEDS_SETUID in refusal(login, user, f"srun {inside(image, options='')}")


def test_jobs_on_two_nodes_have_addresses_of_their_own(login, controller, user, setuid, image, two_computes):
    begun = [jobs.submit(login, user, f"--nodelist={node.name}", inside(image)) for node in two_computes]
    found = []
    for node, job in zip(two_computes, begun, strict=True):
        jobs.wait_for_job(controller, job, "COMPLETED")
        found.append(addresses(jobs.output(login, user, job)))
        assert set(found[-1]) == {"lo", "eth0"}
        assert found[-1]["eth0"] not in addresses(node.output("ip -4 -o addr")).values()
        login.run_as(user, f"rm -f .isthmus-test-{job}.out")
    assert len({each["eth0"] for each in found}) == 2


def test_containers_of_one_node_have_addresses_of_their_own(login, user, setuid, image):
    both = login.run_as(user, f"srun --nodes=1 --ntasks=2 {inside(image)}")
    found = [line.split()[3] for line in both.splitlines() if line.split()[1] == "eth0"]
    assert len(set(found)) == 2


def test_container_reaches_other_hosts(login, controller, user, setuid, image):
    variables = controller.variables
    banner = f"nc -w 5 {variables['base_address']} {variables['port']}"
    assert login.run_as(user, f"srun {inside(image, banner)} </dev/null").startswith("SSH-")


def test_address_is_given_back(login, computes, user, setuid, image):
    login.run_as(user, f"srun --nodelist={computes[0].name} {inside(image, 'true')}")
    wait(lambda: leases(computes[0]), lambda left: not left)
    wait(lambda: computes[0].output("ip -o link show master apptainer0"), lambda shown: shown == "")


def test_containers_of_two_nodes_meet_in_flannels_network(login, controller, user, setuid, image, two_computes):
    if "flannel" not in controller.variables["apptainer_net_networks"]:
        pytest.skip("containers of this site cannot have Flannel's network: apptainer_net_networks")
    near, far = two_computes
    serve = inside(image, "sh -c 'ip -4 -o addr show eth0; echo met | nc -l -p 5000 -w 60'", FLANNEL)
    job = jobs.submit(login, user, f"--nodelist={far.name}", serve)
    try:
        wait(lambda: addresses(jobs.written(login, user, job)), lambda seen: "eth0" in seen)
        address = addresses(jobs.output(login, user, job))["eth0"]
        ask = inside(image, f"sh -c 'until nc -w 5 {address} 5000; do sleep 1; done'", FLANNEL)
        assert login.run_as(user, f"srun --nodelist={near.name} {ask} </dev/null") == "met"
    finally:
        jobs.cancel(controller, job)
    wait(lambda: near.run("find /run/isthmus/cni/networks -name '*.*.*.*'").stdout, lambda shown: shown == "")


def test_user_stays_himself_inside(login, user, setuid, image):
    assert login.run_as(user, f"srun {inside(image, 'id -un')}") == user
    shadow = inside(image, "cat /mnt/shadow", "--network bridge -B /etc/shadow:/mnt/shadow")
    assert "Permission denied" in refusal(login, user, f"srun {shadow}")
    capabilities = login.run_as(user, f"srun {inside(image, 'grep CapEff /proc/self/status')}")
    assert int(capabilities.split()[1], 16) == 0


@pytest.mark.parametrize("case", REFUSED)
def test_network_is_refused(login, user, setuid, image, case):
    network, reported = REFUSED[case]
    assert reported in refusal(login, user, f"srun {inside(image, 'true', network, options='')}")


def test_user_without_the_right_is_refused(login, stranger, references):
    image = login.run_as(stranger, f"isthmus pull {references['busybox']}")
    assert NEEDS_SETUID in refusal(login, stranger, f"srun {inside(image, 'true', options='')}")
    assert login.run_as(stranger, f"srun apptainer --silent exec {image} echo here") == "here"


def test_user_brings_no_settings(login, user, setuid, image, work):
    login.run_as(
        user, f"sed 's/^allow net networks.*/allow net networks = ptp/' /etc/apptainer/apptainer.conf > {work}/conf"
    )
    reported = refusal(login, user, f"apptainer --config {work}/conf exec --net --network ptp {image} true")
    assert "--config requires to be root or an unprivileged installation" in reported


def test_only_root_can_change_what_it_trusts(nodes, starter):
    for node in nodes.values():
        assert node.output(f"stat --format '%a %U %G' {starter}") == "4755 root root"
        listed = node.output(f"find {NETWORKS} /usr/lib/cni /etc/apptainer /var/lib/apptainer").split()
        folders = {str(each) for path in [starter, *listed] for each in PurePosixPath(path).parents}
        trusted = " ".join({starter, *listed} | folders)
        assert node.output(f"find {trusted} -maxdepth 0 ! -type l '(' ! -user root -o -perm /022 ')'") == ""
