"""A machine that was cut off: podman goes on believing that the nodes run, and cannot start or stop them."""

import json
import os
import signal
import subprocess

import pytest

from tests.support.clusters import playbooks
from tests.support.wait import wait

NAME = "cut-off"
MADE = ("-i", ".config/molecule/inventory", "playbooks/create.yml")


def node_processes():
    listed = subprocess.run(
        ["podman", "container", "inspect", f"{NAME}-c1"], check=True, capture_output=True, text=True
    ).stdout
    state = json.loads(listed)[0]["State"]
    return state["ConmonPid"], state["Pid"]


@pytest.fixture
def bed():
    def make(log):
        return playbooks.run(log, "ansible-playbook", *MADE, environment={"NAME": NAME})

    assert make("cut_off_made").rc == 0
    yield make
    playbooks.run("cut_off_gone", "ansible-playbook", *MADE[:2], "playbooks/teardown.yml", environment={"NAME": NAME})


def test_nodes_that_died_unseen_are_made_again(bed):
    monitor, first = node_processes()
    os.kill(monitor, signal.SIGKILL)
    os.kill(first, signal.SIGKILL)
    wait(lambda: not os.path.exists(f"/proc/{first}/cgroup"), timeout_s=10)
    again = bed("cut_off_again")
    assert again.rc == 0
    assert node_processes()[1] != first
    assert bed("cut_off_repeated").changed == set()
