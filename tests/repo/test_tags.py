"""Roles that can be run in parts: each entry of their main.yml has one tag, and preflight always goes first."""

import pytest

from tests.repo import tree

ROLES = [
    "apptainer",
    "artifacts",
    "base",
    "ca",
    "etcd",
    "join",
    "kubernetes",
    "network",
    "provider_local",
    "registry",
    "slurm",
    "workloads",
]
STAGES = {"preflight", "install", "configure", "run"}


def entries(role):
    tasks = tree.load(tree.ROOT / f"roles/{role}/tasks/main.yml")
    return {task["name"]: {task["tags"]} if isinstance(task["tags"], str) else {*task["tags"]} for task in tasks}


@pytest.mark.parametrize("role", ROLES)
def test_every_entry_has_one_stage_and_preflight_always_runs(role):
    for name, tags in entries(role).items():
        assert len(tags & STAGES) == 1, name
        assert ("always" in tags) == ("preflight" in tags), name


@pytest.mark.parametrize("role", ROLES)
def test_included_files_pass_their_tags_on(role):
    for task in tree.load(tree.ROOT / f"roles/{role}/tasks/main.yml"):
        included = task.get("ansible.builtin.include_tasks")
        assert not included or included["apply"]["tags"] == task["tags"], task["name"]
