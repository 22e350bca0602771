"""The callback task_counts, in a run of Ansible on this machine."""

import json
import os
import subprocess

from tests.support.clusters.cluster import BIN, ROOT

TASKS = """
- name: Ask twice
  ansible.builtin.command: {argv: ["true"]}
  loop: [1, 2]
  changed_when: false
- name: Stay here
  ansible.builtin.assert: {that: 1 < 2}
- name: Skip
  ansible.builtin.command: {argv: ["true"]}
  when: 1 > 2
- name: Ask another
  ansible.builtin.command: {argv: ["true"]}
  delegate_to: there
  changed_when: false
- name: Ask the deployer
  ansible.builtin.command: {argv: ["true"]}
  delegate_to: localhost
  changed_when: false
- name: Ask once
  ansible.builtin.stat: {path: /}
"""


def test_role_is_counted_as_often_as_it_went_to_a_host(tmp_path):
    (tmp_path / "roles/demo/tasks").mkdir(parents=True)
    (tmp_path / "roles/demo/tasks/main.yml").write_text(TASKS)
    play = [{"hosts": "here", "gather_facts": False, "roles": ["demo"]}]
    (tmp_path / "play.yml").write_text(json.dumps(play))
    environment = os.environ | {"ISTHMUS_TASK_COUNTS": str(tmp_path / "counts.json"), "ANSIBLE_ROLES_PATH": "roles"}
    command = [BIN / "ansible-playbook", "-i", "here,there", "-c", "local", tmp_path / "play.yml"]
    subprocess.run(command, cwd=ROOT, env=environment, check=True, capture_output=True)
    assert json.loads((tmp_path / "counts.json").read_text()) == {"demo": {"here": 4, "there": 1}}
