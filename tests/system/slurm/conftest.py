"""What the tests of Slurm share."""

from __future__ import annotations

import pytest

from tests.support.clusters import jobs


@pytest.fixture(scope="session")
def settings(controller):
    """What slurmctld says about its settings."""
    return jobs.settings(controller)


@pytest.fixture(scope="session")
def managed(controller):
    """Only where Isthmus installed Slurm itself."""
    if not controller.variables["slurm_manage"]:
        pytest.skip("this Slurm is the site's own")


@pytest.fixture(scope="session")
def run_job(login, controller, user):
    """Submit a batch job, wait for its success, return its output."""

    def run(options, command):
        job = jobs.submit(login, user, options, command)
        jobs.wait_for_job(controller, job, "COMPLETED")
        return jobs.output(login, user, job)

    yield run
    login.run_as(user, "rm -f .isthmus-test-*.out")
