"""The site's own programs around a step of an upgrade: what they are given, and that one that fails stops it."""

import json
import os
import subprocess

import pytest

from tests.support.clusters.cluster import BIN, ROOT

WRITES = 'echo "$ISTHMUS_UPGRADE_MOMENT $ISTHMUS_UPGRADE_HOSTS $ISTHMUS_UPGRADE_TO" >>'


@pytest.fixture
def upgrade(tmp_path):
    """Do the controller's step, which only writes that it was done, with hooks; return the run and what was written."""
    done = tmp_path / "done"
    step = tmp_path / "roles/slurm/tasks/upgrade/controller.yml"
    step.parent.mkdir(parents=True)
    command = {"argv": ["sh", "-c", f"echo the step >>{done}"]}
    step.write_text(json.dumps([{"name": "Do it", "ansible.builtin.command": command, "changed_when": True}]))
    task = {"name": "Upgrade", "ansible.builtin.include_role": {"name": "upgrade", "tasks_from": "step"}}
    play = [{"hosts": "ctl", "gather_facts": False, "vars": {"upgrade_part": "controller"}, "tasks": [task]}]
    (tmp_path / "play.yml").write_text(json.dumps(play))

    def run(**hooks):
        given = {moment: [["sh", "-c", f"{WRITES}{done}; {end}"]] for moment, end in hooks.items()}
        variables = {"upgrade_hooks": given, "slurm_version": "26.05", "cluster_state_dir": str(tmp_path)}
        hosts = {"hosts": {"ctl": {}}}
        inventory = tmp_path / "hosts.json"
        inventory.write_text(json.dumps({"controller": hosts, "etcd": hosts}))
        words = ["-i", inventory, "-c", "local", "-e", json.dumps(variables), tmp_path / "play.yml"]
        environment = os.environ | {"ANSIBLE_ROLES_PATH": f"{tmp_path}/roles:{ROOT}/roles"}
        made = subprocess.run(
            [BIN / "ansible-playbook", *words], cwd=ROOT, env=environment, check=False, capture_output=True, text=True
        )
        return made, done.read_text().splitlines()

    return run


def test_hooks_run_around_the_step_and_know_what_it_is(upgrade):
    made, lines = upgrade(before_controller="true", after_controller="true", before_batch="true")
    assert made.returncode == 0, made.stdout
    assert lines == ["before_controller ctl 26.05", "the step", "after_controller ctl 26.05"]


def test_hook_that_fails_stops_before_the_step(upgrade):
    made, lines = upgrade(before_controller="echo the window is closed >&2; exit 3", after_controller="true")
    assert made.returncode != 0
    assert "the window is closed" in made.stdout
    assert lines == ["before_controller ctl 26.05"]
