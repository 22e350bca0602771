"""The short form of an upgrade, on any site: another revision of the Slurm that it has, killed on the way, to the end.

The packages are the installed ones under another version, served by each host to itself. So all is real, apt, dpkg and
the daemons, and nothing depends on what a mirror has today.
"""

import json

import pytest

from tests.support.clusters import jobs, playbooks, upgrades
from tests.support.clusters.cluster import ROOT

pytestmark = pytest.mark.disruptive
MADE = "/var/tmp/isthmus-test-revision"
SOURCE = "/etc/apt/sources.list.d/isthmus-test-revision.list"
REVISION = "+isthmus1"
NETWORK = "--mem=10 --pod-network=private"
SCRIPT = (ROOT / "tests/support/remote/revision.sh").read_text()


@pytest.fixture(scope="module")
def revision(nodes):
    """The other version, which each host can have; afterwards only what is installed."""
    made = {node.output(f"sh -s {MADE} {SOURCE} {REVISION} <<'END'\n{SCRIPT}\nEND") for node in nodes.values()}
    (version,) = made
    yield version
    for node in nodes.values():
        node.output(f"rm -rf {MADE} {SOURCE}")


@pytest.fixture(scope="module")
def job(login, controller, user, revision):
    """A job with a pod network that runs throughout."""
    with jobs.running(login, controller, user, NETWORK, "sleep 3000") as running:
        yield running


@pytest.fixture(scope="module")
def variables(revision):
    return "-e", json.dumps({"slurm_version": revision})


def installed(nodes):
    """Host -> version of its Slurm, or versions."""
    listed = "dpkg-query --show --showformat='${db:Status-Status} ${Version}\\n' 'slurm*'"
    asked = f"{listed} | sed -n 's/^installed //p' | sort -u"
    return {name: node.output(asked) for name, node in nodes.items()}


def assert_runs_on(controller, job):
    shown = jobs.fields(controller.output(f"scontrol show job {job}"))
    assert (shown["JobState"], shown["Restarts"]) == ("RUNNING", "0")


def test_killed_in_a_batch_the_controller_is_new(controller, computes, nodes, job, revision, variables):
    playbooks.cut("Run slurmd on the new files", upgrades.UPGRADE, *variables)
    assert installed(nodes)[controller.name] == revision
    assert "(deleted)" not in upgrades.program(controller, "slurmctld")
    assert "(deleted)" in upgrades.program(computes[0], "slurmd")
    assert_runs_on(controller, job)


@pytest.fixture
def hook(tmp_path):
    """A program of the site's own that writes down why it was run; its variable, and its file."""
    file = tmp_path / "moments"
    words = f"echo $ISTHMUS_UPGRADE_MOMENT $ISTHMUS_UPGRADE_HOSTS $ISTHMUS_UPGRADE_TO >>{file}"
    return ("-e", json.dumps({"upgrade_hooks": {"after_batch": [["sh", "-c", words]]}})), file


def test_run_again_it_comes_to_its_end(controller, computes, nodes, job, revision, variables, hook):
    words, moments = hook
    assert playbooks.play("revision_rest", upgrades.UPGRADE, *variables, *words).rc == 0
    assert moments.read_text().splitlines()[0] == f"after_batch {computes[0].name} {revision}"
    assert installed(nodes) == dict.fromkeys(nodes, revision)
    assert "(deleted)" not in upgrades.program(computes[0], "slurmd")
    assert_runs_on(controller, job)
    jobs.wait_for_nodes(controller, *(node.name for node in computes))


def test_third_run_changes_nothing(variables):
    again = playbooks.play("revision_again", upgrades.UPGRADE, *variables)
    assert (again.rc, again.changed) == (0, set())
    assert "Nothing is to be done" in again.output


def test_step_runs_in_a_pod_network(login, user, job):
    assert "lo:" in login.run_as(user, f"srun {NETWORK} cat /proc/net/dev")


def test_way_back(controller, nodes, job, revision):
    before = revision.removesuffix(REVISION)
    upgrades.back("revision_back", controller)
    assert installed(nodes) == dict.fromkeys(nodes, before)
    assert_runs_on(controller, job)
