"""Changed settings alone: they reach the nodes, nothing else is touched, and jobs go on."""

import json

import pytest

from tests.support.clusters import jobs, playbooks

PLAYBOOK = "playbooks/reconfigure.yml"
CONTENT = "# a site's own\n"


def files(content):
    return ("-e", json.dumps({"slurm_conf_files": {"helpers.conf": content, "plugstack.conf.d/site.conf": content}}))


@pytest.fixture(scope="module")
def changed(login, controller, user):
    """A site's own files, and a job that runs meanwhile; taken away again."""
    with jobs.running(login, controller, user, "--mem-per-cpu=10 --time=30", "sleep 600") as job:
        yield playbooks.succeed("reconfigure", *files(CONTENT), PLAYBOOK), job
    playbooks.succeed("reconfigure_back", *files(""), PLAYBOOK)
    assert not controller.host.file("/etc/slurm/helpers.conf").exists


def test_files_reach_the_nodes(changed, controller, computes):
    assert controller.output("cat /etc/slurm/helpers.conf") == CONTENT.strip()
    for node in computes:
        assert node.output("cat /run/slurm/conf/helpers.conf") == CONTENT.strip()
        assert node.output("cat /etc/slurm/plugstack.conf.d/site.conf") == CONTENT.strip()


def test_jobs_go_on(changed, controller):
    assert jobs.state(controller, changed[1]) == "RUNNING"


def test_no_package_is_looked_at(changed):
    assert "Install packages" not in changed[0].output


def test_second_run_changes_nothing(changed):
    assert playbooks.succeed("reconfigure_again", *files(CONTENT), PLAYBOOK).changed == set()


def test_wrong_name_is_refused_before_any_change(controller):
    wrong = json.dumps({"slurm_conf_files": {"slurm.conf": "x"}})
    refused = playbooks.play("reconfigure_wrong", "-e", wrong, PLAYBOOK)
    assert refused.rc
    assert "slurm_conf_files has ''slurm.conf''; name one of" in " ".join(refused.output.split())
