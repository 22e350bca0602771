"""No task's cost grows with hosts times hosts: what describes the whole cluster is computed once and handed on."""

import re

import pytest

from tests.repo import tree

# Walks the variables of other hosts: one host alone, by its name, is no walk.
WALK = re.compile(r"'extract', hostvars|\(hostvars[,)]|hostvars \||\bhostvars,")
# Where one is right, and why its cost does not grow with the square of the hosts.
WALKS = {
    "playbooks/validate.yml": "run_once",
    "roles/backup/tasks/seal.yml": "on the deployer alone",
    "roles/base/tasks/version.yml": "run_once",
    "roles/bundle/vars/main.yml": "used while a bundle is made, where a run has a node of each kind",
    "roles/etcd/vars/main.yml": "the members of etcd, an odd handful, on themselves",
    "roles/join/vars/main.yml": "in a task that is run_once",
    "roles/monitoring/vars/main.yml": "rendered on the controller alone",
    "roles/network/tasks/install.yml": "run_once",
    "roles/network/tasks/plugin/verify.yml": "run_once",
    "roles/network/tasks/preflight.yml": "run_once",
    "roles/network/vars/main/main.yml": "the members of etcd, and hosts outside group network",
    "roles/provider_openstack/tasks/connect.yml": "on the deployer alone, of servers that were just made",
    "roles/provider_openstack/tasks/remove.yml": "on the deployer alone, of nodes that leave",
    "roles/slurm/tasks/hardware/main.yml": "on the controller alone",
    "roles/slurm/tasks/preflight.yml": "one host's own declaration, and a loop that is run_once",
    "roles/upgrade/tasks/main.yml": "on the deployer alone",
    "roles/slurm/vars/main.yml": "rendered on the controller alone",
}
TEXTS = tree.files("roles/*/tasks/*.yml", "roles/*/vars/*.yml", "roles/*/templates/*.j2", "playbooks/*.yml")


def test_walks_over_all_hosts_are_listed():
    found = {tree.shown(path) for path in TEXTS if WALK.search(path.read_text())}
    assert found == set(WALKS)


@pytest.mark.parametrize("path", [name for name, reason in WALKS.items() if reason == "run_once"])
def test_task_that_walks_runs_once(path):
    tasks = [task for each in tree.load(tree.ROOT / path) for task in each.get("tasks", [each])]
    walking = [task for task in tasks if WALK.search(str(task))]
    assert walking
    assert [task["name"] for task in walking if not task.get("run_once")] == []


# A cluster has one of each: without it the rest of the run would be wrong.
FATAL_PLAYS = {"controller", "etcd", "etcd:!apptainer", "upgrade_etcd"}


@pytest.mark.parametrize("path", tree.files("playbooks/*.yml"), ids=tree.shown)
def test_one_dead_node_does_not_stop_a_play(path):
    """A restore is of the whole cluster or not at all."""
    if path.stem == "restore":
        return
    plays = [play for play in tree.load(path) if play.get("any_errors_fatal")]
    assert {play["hosts"] for play in plays} <= FATAL_PLAYS


# Tasks that end the run for all hosts though they look at each, and why.
FATAL_TASKS = {
    "base: Refuse to give a live cluster a second identity": "the whole cluster's",
    "ca: Refuse to give a live cluster a second CA": "the whole cluster's",
    "registry: Refuse addresses, accounts and recipes that cannot work": "on the controller alone",
    "slurm: Refuse to stop what could not be brought back": "a restore is of the whole cluster or not at all",
    "slurm: Refuse more memory than the node has": "slurmctld would drain it",
}


def test_task_that_looks_at_one_node_fails_for_it_alone():
    fatal = {
        f"{path.parts[-3] if path.parent.name == 'tasks' else path.parts[-4]}: {task['name']}": task
        for path in tree.files("roles/*/tasks/*.yml")
        for task in tree.load(path)
        if task.get("any_errors_fatal") and not task.get("run_once")
    }
    of_nodes = {name for name, task in fatal.items() if "controller" not in str(task.get("when"))}
    assert of_nodes <= set(FATAL_TASKS)


def test_what_hosts_share_is_determined_after_what_it_holds():
    tasks = [task["name"] for task in tree.load(tree.ROOT / "roles/network/tasks/preflight.yml")]
    assert tasks.index("Look at the host") < tasks.index("Determine what all hosts share")
