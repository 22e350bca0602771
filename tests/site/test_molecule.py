import pytest

from tests.support.clusters import playbooks

# What settings change; tests/full verifies all, and that a second run changes nothing.
SAMPLE = """
tests/system/base tests/system/slurm/test_cluster.py tests/system/slurm/test_limits.py tests/system/apptainer
tests/system/network/test_flannel.py tests/system/network/test_names.py tests/system/kubernetes/test_hosts.py
tests/system/kubernetes/test_up.py tests/system/kubernetes/test_gpus.py
"""


@pytest.fixture
def molecule():
    def run(step):
        environment = {"VERIFY_TESTS": " ".join(SAMPLE.split())}
        return playbooks.run(f"molecule_{step}", "molecule", step, "-s", "alternative", environment=environment)

    assert run("destroy").rc == 0
    yield run
    assert run("destroy").rc == 0


def test_whole_site_with_other_settings(molecule):
    for step in ("create", "converge", "verify"):
        assert molecule(step).rc == 0, step
