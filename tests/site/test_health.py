"""Nodes that examine themselves: a fault drains one, its end resumes it, and an admin's drain stays.

The test bed has this off: other tests break nodes on purpose.
"""

import json

import pytest

from tests.support.clusters import jobs, playbooks
from tests.support.wait import wait

pytestmark = pytest.mark.full
PLAYBOOK = "playbooks/reconfigure.yml"
PROGRAM = "/opt/isthmus/bin/isthmus-node-health"
FAULT = "isthmus: health: /dev/fuse is missing or closed to users"


def variables(program):
    return "-e", json.dumps({"slurm_health_program": program, "slurm_health_interval_s": 60})


@pytest.fixture(scope="module")
def examined(computes):
    """The site with the program of ours in use; afterwards without."""
    playbooks.succeed("health", PLAYBOOK, *variables(PROGRAM))
    yield computes
    playbooks.succeed("health_back", PLAYBOOK, *variables(""))


@pytest.fixture
def broken(examined, whole):
    """A node whose /dev/fuse is closed to users."""
    node = examined[-1]
    node.output("chmod 0600 /dev/fuse")
    yield node
    node.output(f"chmod 0666 /dev/fuse && {PROGRAM}")


def reason(controller, node):
    return controller.output(f"sinfo --noheader --nodes={node.name} --format=%E")


def test_well_node_stays_and_asks_once(examined, whole, controller):
    for node in examined:
        assert node.output(f"{PROGRAM} && test -e /run/isthmus-node-health.well") == "well"
        assert jobs.node_states(controller)[node.name] == "idle"


def test_slurmd_drains_a_broken_node_and_resumes_it(broken, controller):
    """The program runs before slurmd registers, and when slurmctld's clock says so."""
    broken.output("systemctl restart slurmd")
    wait(lambda: reason(controller, broken), lambda shown: shown == FAULT, timeout_s=60)
    assert jobs.node_states(controller)[broken.name].startswith("drain")
    broken.output("chmod 0666 /dev/fuse")
    jobs.wait_for_nodes(controller, broken.name, timeout_s=150)


def test_drain_of_an_admin_stays(broken, controller):
    controller.output(f"scontrol update NodeName={broken.name} State=DRAIN Reason='new disk'")
    try:
        assert "/dev/fuse" in broken.output(PROGRAM)
        assert reason(controller, broken) == "new disk"
        assert broken.output(f"chmod 0666 /dev/fuse && {PROGRAM}") == "well"
        assert reason(controller, broken) == "new disk"
    finally:
        controller.output(f"scontrol update NodeName={broken.name} State=RESUME")
