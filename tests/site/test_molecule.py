import pytest

from tests.support.clusters import playbooks

# What settings change; tests/full verifies all, and that a second run changes nothing.
SAMPLE = """
tests/system/base tests/system/slurm/test_cluster.py tests/system/slurm/test_limits.py tests/system/apptainer
tests/system/network/test_names.py tests/system/kubernetes/test_hosts.py
tests/system/kubernetes/test_up.py tests/system/kubernetes/test_gpus.py
"""
# Then its Slurm gets another revision. The site is the only one of `make test` that nobody needs afterwards.
UPGRADE = "tests/upgrade/test_revision.py"


@pytest.fixture
def molecule():
    def run(step, tests=SAMPLE, log=""):
        environment = {"VERIFY_TESTS": " ".join(tests.split())}
        return playbooks.run(f"molecule_{log or step}", "molecule", step, "-s", "alternative", environment=environment)

    assert run("destroy").rc == 0
    yield run
    assert run("destroy").rc == 0


def test_whole_site_with_other_settings(molecule):
    for step in ("create", "converge", "verify"):
        assert molecule(step).rc == 0, step
    assert molecule("verify", UPGRADE, "upgrade").rc == 0
