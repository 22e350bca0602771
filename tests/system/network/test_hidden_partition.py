"""A partition that squeue does not show by itself: its jobs are no less alive."""

import pytest

from tests.support.clusters import jobs

pytestmark = pytest.mark.disruptive
ALL = "from isthmus.clients.slurm.commands import jobs_on_nodes; print(*jobs_on_nodes())"
OWN = "from isthmus.clients.slurm.own_jobs import own_jobs; print(*[job.id for job in own_jobs()])"


@pytest.fixture
def hidden(controller, computes):
    """A partition of its own; users may submit to it."""
    controller.output(f"scontrol create partitionname=hidden hidden=yes nodes={computes[0].name}")
    yield "hidden"
    controller.output("scontrol delete partitionname=hidden")


def test_jobs_in_hidden_partitions_are_seen(hidden, login, controller, user, computes):
    with jobs.running(login, controller, user, f"--partition={hidden} --mem=10") as job:
        assert job not in login.run_as(user, "squeue --noheader --format=%i").split()
        assert job in computes[0].output(f"/opt/isthmus/bin/python -c '{ALL}'").split()
        assert job in login.run_as(user, f"/opt/isthmus/bin/python -c '{OWN}'").split()
