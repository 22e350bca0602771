"""One more node is made from the image and joins by itself; in the end it is what site.yml makes."""

import json
import subprocess

import pytest

from tests.support.clusters import jobs, node_image, playbooks
from tests.support.clusters.cluster import inventory_sources, load
from tests.support.clusters.node_image import podman
from tests.support.wait import wait

EXTRA = "tests/site/files/c3-joins.yml"
NEW = "c3"
ARGUMENTS = ("-i", EXTRA, "-e", "join_service=true")
# What a node has of its own, of its image, or of its past.
OWN = ("/etc/machine-id", "/etc/hostname", "/etc/isthmus/tls/networkd.", "/etc/ssh/ssh_host", "/var/lib/slurm/slurmd/")
IMAGES = ("/opt/isthmus/wheels/", "isthmus-join.service")
# Nodes that are there already learn of it at the next site.yml.
NAMES = ("/etc/hosts", "/etc/ssh/ssh_config.d/isthmus.conf")
# As sha256sum prints it: the content has the node's name. A test of its own compares the rest, this one owner and mode.
SUMS = ("  /etc/pam.d/sshd",)
# Prometheus asks the hosts of its inventory; a node that joined has no exporter until it is one of them.
MONITORING = ("/monitoring", "prometheus", "exporter")


@pytest.fixture(scope="module")
def published(controller):
    """A controller that lets nodes join; service and node are gone with the test."""
    was = controller.run("systemctl is-enabled isthmus-joind").rc == 0
    yield playbooks.succeed("join", *ARGUMENTS, "playbooks/join.yml")
    controller.output(f"isthmus node forget {NEW}")
    # Addresses of its last jobs are given back some seconds after these ended.
    wait(lambda: controller.run(f"isthmus network forget {NEW}"), lambda reported: reported.rc == 0, timeout_s=60)
    playbooks.succeed("join_left", "--limit", controller.name, "playbooks/reconfigure.yml")
    if not was:
        controller.output("systemctl disable --now isthmus-joind")


@pytest.fixture(scope="module")
def new(published):
    return load([*inventory_sources(), EXTRA]).nodes[NEW]


@pytest.fixture(scope="module")
def machine(new, computes, controller, tmp_path_factory):
    """Makes the node from the image; nothing but its unit makes it a node of the cluster."""
    like, name = node_image.inspect(computes[0]), f"{new.variables['name']}-{NEW}"
    image = node_image.make(like, tmp_path_factory.mktemp("program"))

    def made():
        podman("rm", "--force", "--ignore", "--time=0", name)
        text = token(controller, "--nodes", NEW, "--ttl", "2h")
        given = f"TOKEN={text}\nSERVER={controller.variables['address']}\n"
        return node_image.start(like, image, new, given, tmp_path_factory.mktemp("join"))

    yield made
    podman("rm", "--force", "--ignore", "--time=0", name)
    podman("rmi", "--force", image)


@pytest.fixture(scope="module")
def joined(machine):
    """The node, once it has joined."""
    return once_joined(machine())


def once_joined(container):
    """Wait until what lets a node join is gone, as it is when it has joined."""
    shown = "systemctl show --property=Result --value isthmus-join"
    look = f"if test -e /etc/isthmus/join; then {shown}; else echo joined; fi"
    wait(
        lambda: podman("exec", container, "sh", "-c", look, check=False),
        lambda reported: reported == "joined",
        lambda reported: reported == "exit-code",
        timeout_s=60,
    )
    return container


def token(controller, *arguments):
    """Make a token."""
    reported = json.loads(controller.output(f"isthmus node token create {' '.join(arguments)} --json"))
    return reported["token"]


def test_node_joins_by_itself(joined, controller):
    jobs.wait_for_nodes(controller, NEW)


def test_it_runs_jobs_containers_and_pod_networks(joined, login, user, controller):
    known = json.loads(controller.output("cat /etc/isthmus/images.json"))["images"]
    image = login.run_as(user, f"isthmus pull {known['busybox']['reference']}")
    assert login.run_as(user, f"srun --nodelist={NEW} apptainer --silent exec {image} hostname") == NEW
    own, other = (f"srun {word} --nodelist={NEW} ip -4 -br address" for word in ("--pod-network", ""))
    assert login.run_as(user, own) != login.run_as(user, other)


def test_it_equals_a_node_that_the_site_made(joined, computes):
    """Every file with its owner and mode, every account, every unit, what runs, and the kernel's settings."""
    there = computes[0].output(node_image.LOOK).splitlines()
    here = podman("exec", joined, "sh", "-c", node_image.LOOK).splitlines()
    known = (*OWN, *IMAGES, *NAMES, *SUMS, *MONITORING)
    differs = {line for line in {*there} ^ {*here} if not any(word in line for word in known)}
    assert not differs
    assert len(here) > 5000


def test_its_network_settings_are_anothers_but_for_its_name(joined, computes, new):
    read = "cat /etc/isthmus/network.json"
    there = json.loads(computes[0].output(read))
    here = json.loads(podman("exec", joined, *read.split()))
    assert here == there | {"node": NEW, "address": new.variables["address"]}


def test_its_logins_are_anothers_but_for_its_name(joined, computes):
    read = "cat /etc/pam.d/sshd"
    there = computes[0].output(read)
    here = podman("exec", joined, *read.split())
    assert f"nodename={computes[0].name}" in there
    assert here == there.replace(f"nodename={computes[0].name}", f"nodename={NEW}").strip()


def test_second_join_changes_nothing(joined):
    reported = json.loads(podman("exec", joined, "isthmus", "node", "join", "--json"))
    assert not reported["changed"]
    assert reported["state"].startswith(("idle", "mixed"))


def test_token_for_a_name_that_is_taken_must_say_so(joined, controller):
    refused = controller.run(f"isthmus node token create --nodes {NEW}")
    assert refused.rc == 1
    assert "add --replace" in refused.stderr


def test_revoked_token_is_refused_for_good(joined, controller):
    text = token(controller, "--class", "compute", "--replace", "--uses", "1")
    controller.output(f"isthmus node token revoke {text.split('.')[1]}")
    command = ("podman", "exec", joined, "isthmus", "node", "join", "--token", text)
    asked = subprocess.run(command, check=False, capture_output=True, text=True)
    assert asked.returncode == 3
    assert "not valid, or was revoked" in asked.stderr


def test_no_user_reads_what_joining_needs(joined, controller, user):
    files = (
        "/etc/isthmus/join/compute.json",
        "/etc/isthmus/join/nodes.key",
        "/var/lib/isthmus-join/tokens",
        "/var/lib/isthmus-join/nodes/joined.json",
        "/etc/isthmus/tls/joind.key",
    )
    for file in files:
        assert controller.run(f"test -e {file} && runuser -u {user} -- test ! -r {file}").rc == 0, file
    assert not podman("exec", joined, "find", "/var/lib/isthmus/node", "-perm", "/077")


def test_no_secret_is_in_a_log(joined, controller):
    key = controller.output("base64 --wrap=0 /etc/munge/munge.key")
    log = controller.output("journalctl --unit isthmus-joind --no-pager --output cat")
    log += podman("exec", joined, "journalctl", "--unit", "isthmus-join", "--no-pager", "--output", "cat")
    assert f"{NEW} joins from" in log
    assert "isthmus1." not in log
    assert key not in log


@pytest.fixture(scope="module")
def reached(machine, joined, controller):
    """The node again, as another machine, with a host key that the deployer knows."""
    playbooks.succeed("join_keys", "-i", EXTRA, "--tags", "preflight,configure", "playbooks/create.yml")
    controller.output(f"isthmus node forget {NEW}")
    return once_joined(machine())


@pytest.mark.full
def test_site_changes_nothing_there(reached):
    site = ("--limit", f"{NEW},localhost", "--check", "-e", "main_job_run=false", "site.yml")
    checked = playbooks.succeed("join_equal", *ARGUMENTS, *site)
    assert NEW in checked.recap
    assert NEW not in checked.changed


@pytest.mark.full
def test_name_of_a_node_that_was_removed_is_free(reached, machine, controller):
    leave = ("-e", f"nodes={NEW}", "-e", "remove_force=true", "playbooks/remove_nodes.yml")
    playbooks.succeed("join_removed", *ARGUMENTS, *leave)
    playbooks.succeed("join_again", *ARGUMENTS, "playbooks/join.yml")
    once_joined(machine())
    jobs.wait_for_nodes(controller, NEW)
