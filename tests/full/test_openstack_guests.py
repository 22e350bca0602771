"""Real guests: nova boots the disk of a node, cloud-init takes its data from the config drive, and site.yml deploys it.

All layers, the main job's MPI on both guests, and a user's cluster with a pod on each.
"""

import json
import shlex
import time
from pathlib import Path

import pytest

from tests.support.clusters import openstack_guests as guests
from tests.support.clusters import playbooks
from tests.support.clusters.openstack_site import Project, Site
from tests.support.servers import openstack as box


@pytest.fixture(scope="module")
def disk():
    """The disk of a node, which has the packages of all layers."""
    extra = json.dumps({"image_format": "qcow2", "image_packages_extra": guests.PACKAGES})
    made = playbooks.run("openstack_disk", "ansible-playbook", "playbooks/image.yml", "-e", extra)
    assert made.rc == 0
    return Path(made.output.rpartition("msg: ")[2].split()[0])


@pytest.fixture(scope="module")
def site(tmp_path_factory, disk):
    """A box of this test's own."""
    box.stop()
    running = box.start(tmp_path_factory.mktemp("clouds"))
    guests.add_hypervisor(running)
    site = Site(tmp_path_factory.mktemp("inventory"), tmp_path_factory.mktemp("state"), running)
    guests.write(site, disk)
    with guests.way(running):
        yield site
    box.stop()


@pytest.fixture(scope="module")
def made(site):
    """Servers that answer over SSH, and how long that took."""
    begun = time.monotonic()
    assert site.play("guests", "playbooks/create.yml").rc == 0
    print(f"two guests asked for and reached: {time.monotonic() - begun:.0f} s")
    return site


@pytest.fixture(scope="module")
def deployed(made):
    """The layers on them, and the main job."""
    guests.share_home(made)
    begun = time.monotonic()
    assert made.play("guests_site", "site.yml").rc == 0
    print(f"site.yml with the main job: {time.monotonic() - begun:.0f} s")
    return made


@pytest.mark.parametrize(("node", "address"), [("ctl", "10.20.0.10"), ("c1", "10.20.0.21")])
def test_guest_is_what_its_data_say(made, node, address):
    assert guests.ask(made, node, "hostname") == node
    assert f" {address}/24 " in guests.ask(made, node, "ip -4 -oneline address")
    assert guests.ask(made, node, "cloud-init status").endswith("done")
    assert "passwordauthentication no" in guests.ask(made, node, "sshd -T")


def test_guests_reach_each_other(made):
    guests.ask(made, "c1", "timeout 60 bash -c '</dev/tcp/10.20.0.10/22'")


def test_main_job_ran_on_both(deployed):
    result = json.loads((deployed.state / "results/main_job.json").read_text())
    assert (result["job"]["State"], result["user"]) == ("COMPLETED", "ada")
    mpi = result["mpi"]
    assert (mpi["nodes"], mpi["ranks"], mpi["ring"], mpi["allreduce"]) == (2, 4, "right", "right")


def test_user_runs_a_job_of_his_own(deployed):
    shown = guests.ask(deployed, "ctl", "su - ada -c 'srun --nodes=2 hostname'")
    assert sorted(shown.splitlines()) == ["c1", "ctl"]


def as_ada(site, command):
    """Return what a user's command on the submit host prints."""
    return guests.ask(site, "ctl", f"su - ada -c {shlex.quote(command)}")


def run_pod(site, name, node, command):
    """Have a pod of the user's run on a guest."""
    images = json.loads(guests.ask(site, "ctl", "cat /etc/isthmus/images.json"))["images"]
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "annotations": {"slurm-job.hpk.io/flags": f"--nodelist={node}"}},
        "spec": {
            "restartPolicy": "Never",
            "containers": [{"name": "main", "image": images["busybox"]["reference"], "command": ["sh", "-c", command]}],
        },
    }
    as_ada(site, f"echo {shlex.quote(json.dumps(pod))} | kubectl apply -f -")


def wait_pod(site, name, phase):
    as_ada(site, f"kubectl wait pod/{name} --for=jsonpath='{{.status.phase}}'={phase} --timeout=600s")


def test_users_pods_on_two_guests_reach_each_other(deployed):
    as_ada(deployed, "isthmus up --timeout 900")
    try:
        run_pod(deployed, "web", "c1", "echo from c1 >/tmp/page; exec httpd -f -p 8080 -h /tmp")
        wait_pod(deployed, "web", "Running")
        host, address = as_ada(deployed, "kubectl get pod web -o jsonpath='{.status.hostIP} {.status.podIP}'").split()
        assert host == "10.20.0.21"
        run_pod(deployed, "ask", "ctl", f"until wget -qO- http://{address}:8080/page; do sleep 1; done")
        wait_pod(deployed, "ask", "Succeeded")
        assert as_ada(deployed, "kubectl logs ask") == "from c1"
    finally:
        as_ada(deployed, "isthmus down")


def test_second_run_changes_nothing(deployed):
    again = deployed.play("guests_second", "site.yml")
    assert (again.rc, again.changed) == (0, set())


def test_teardown_leaves_nothing(made):
    assert made.play("guests_teardown", "playbooks/teardown.yml").rc == 0
    assert not any(Project(made.box).listing().values())
