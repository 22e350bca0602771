import json

import pytest

from tests.support.clusters import playbooks

QUIET = {"changed": 0, "unreachable": 0, "failed": 0}


# Roles whose tasks are counted, and how often one of them may go to a host when there is nothing to do.
COUNTED = {
    "apptainer",
    "artifacts",
    "base",
    "ca",
    "etcd",
    "kubernetes",
    "kubernetes_job",
    "main_job",
    "network",
    "provider_local",
    "registry",
    "slurm",
    "workloads",
}
MOST = 8


@pytest.fixture(scope="module")
def second_run(tmp_path_factory):
    """Run everything again; the recap, and how often each role went to each host."""
    counts = tmp_path_factory.mktemp("counts") / "counts.json"
    recap = playbooks.succeed("second_run", "site.yml", environment={"ISTHMUS_TASK_COUNTS": str(counts)}).recap
    return recap, json.loads(counts.read_text())


def test_second_run_changes_nothing(nodes, second_run):
    recap, _ = second_run
    assert set(recap) >= set(nodes)
    assert recap == dict.fromkeys(recap, QUIET)


def test_second_run_goes_to_a_host_a_few_times_per_role(second_run):
    _, counts = second_run
    print(json.dumps(counts, indent=1))
    assert counts.keys() >= COUNTED
    assert sum(counts["artifacts"].values()) <= 1
    above = {f"{role} on {host}": n for role in COUNTED for host, n in counts.get(role, {}).items() if n > MOST}
    assert not above


def test_check_run_finds_nothing_to_do(nodes):
    recap = playbooks.succeed("check_run", "site.yml", "--check").recap
    assert set(recap) >= set(nodes)
    assert recap == dict.fromkeys(recap, QUIET)


def test_limit_keeps_slurm_conf_whole(controller, computes):
    files = "sha256sum /etc/slurm/slurm.conf /etc/slurm/nodes.conf /etc/slurm/partitions.conf"
    before = controller.output(files)
    recap = playbooks.succeed("limit", "site.yml", "--limit", computes[0].name).recap
    assert controller.name not in recap
    assert controller.output(files) == before
    assert computes[0].run("test -e /etc/slurm/slurm.conf").rc != 0
