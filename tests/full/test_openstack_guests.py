"""Real guests: nova boots the image of a node, cloud-init takes its data from the config drive, and Ansible logs in.

Layers base and slurm come over SSH, up to an MPI job on two of them.
"""

import shlex
import time
from pathlib import Path

import pytest

from tests.support.clusters import openstack_guests as guests
from tests.support.clusters import playbooks
from tests.support.clusters.openstack_site import Project, Site
from tests.support.servers import openstack as box

PROGRAM = r"""
#include <mpi.h>
#include <stdio.h>
int main(int argc, char **argv)
{
    int rank, sum;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    printf("rank=%d sum=%d\n", rank, sum);
    return MPI_Finalize();
}
"""
# Guests have no home in common: the program is sent to the nodes of the job.
JOB = """\
cd /tmp && cat >sum.c && mpicc -o sum sum.c && salloc --quiet --nodes=2 --ntasks=2 --mem=300 \
sh -c 'sbcast --force sum /tmp/sum && srun --mpi=pmix --chdir=/tmp sh -c "/tmp/sum; hostname"'
"""


@pytest.fixture(scope="module")
def disk():
    """The disk of a node, which has the packages of all layers."""
    made = playbooks.run("openstack_disk", "ansible-playbook", "playbooks/image.yml", "-e", "image_format=qcow2")
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
    print(f"three guests asked for and reached: {time.monotonic() - begun:.0f} s")
    return site


@pytest.fixture(scope="module")
def deployed(made):
    """Layers base and slurm."""
    assert made.play("guests_layers", "molecule/slurm/converge.yml").rc == 0
    return made


@pytest.mark.parametrize(("node", "address"), [("ctl", "10.20.0.10"), ("c1", "10.20.0.21"), ("c2", "10.20.0.22")])
def test_guest_is_what_its_data_say(made, node, address):
    assert guests.ask(made, node, "hostname") == node
    assert f" {address}/24 " in guests.ask(made, node, "ip -4 -oneline address")
    assert guests.ask(made, node, "cloud-init status").endswith("done")
    assert "passwordauthentication no" in guests.ask(made, node, "sshd -T")


def test_guests_reach_each_other(made):
    guests.ask(made, "c1", "timeout 60 bash -c '</dev/tcp/10.20.0.10/22'")


def test_nodes_take_jobs(deployed):
    states = guests.ask(deployed, "ctl", "sinfo --noheader --Node --format='%N %t'").splitlines()
    assert {tuple(line.split()) for line in states} == {("c1", "idle"), ("c2", "idle")}


def test_ranks_of_two_guests_meet(deployed):
    command = f"su - ada -c {shlex.quote(JOB)} <<'END'\n{PROGRAM}\nEND"
    printed = guests.ask(deployed, "ctl", command).splitlines()
    assert sorted(printed) == ["c1", "c2", "rank=0 sum=1", "rank=1 sum=1"]


def test_second_run_changes_nothing(deployed):
    for playbook in ("playbooks/create.yml", "molecule/slurm/converge.yml"):
        again = deployed.play("guests_second", playbook)
        assert (again.rc, again.changed) == (0, set())


def test_teardown_leaves_nothing(deployed):
    assert deployed.play("guests_teardown", "playbooks/teardown.yml").rc == 0
    assert not any(Project(deployed.box).listing().values())
