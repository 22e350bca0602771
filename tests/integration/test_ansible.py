import json
import os
import subprocess

import pytest

from tests.support.cluster import BIN, ROOT

PLAYBOOKS = sorted(path.name for path in (ROOT / "playbooks").glob("*.yml"))
SCENARIOS = sorted(path.parent.name for path in (ROOT / "molecule").glob("*/molecule.yml"))


def run(*command):
    environment = os.environ | {"PATH": f"{BIN}:{os.environ['PATH']}", "NO_COLOR": "1"}
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)


def test_playbooks_are_ones_ansible_reads():
    told = run("ansible-playbook", "--syntax-check", "site.yml", *(f"playbooks/{name}" for name in PLAYBOOKS))
    assert told.returncode == 0, told.stdout + told.stderr


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_scenario_is_one_molecule_accepts(scenario):
    told = run("molecule", "matrix", "--scenario-name", scenario, "test")
    assert told.returncode == 0, told.stdout + told.stderr
    assert "CRITICAL" not in told.stdout + told.stderr


def test_second_inventory_source_adds_a_node():
    sources = ("-i", "inventories/local", "-i", "tests/site/files/c3.yml")
    groups = json.loads(run("ansible-inventory", *sources, "--list").stdout)
    assert groups["compute"]["hosts"] == ["c1", "c2", "c3"]
    assert set(groups["slurm"]["children"]) == {"controller", "login", "compute"}
