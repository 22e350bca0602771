"""Each inventory of the tree is right, and a broken one is refused before any play."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.repo import tree

BIN = Path(sys.executable).parent
# It takes one second; the rest is for a busy machine.
TIMEOUT_S = 300
INVENTORIES = sorted({path.parts[len(tree.ROOT.parts) + 1] for path in tree.files("inventories")} - {"common"})


def run(*command):
    return subprocess.run(
        [BIN / command[0], *command[1:]], cwd=tree.ROOT, capture_output=True, text=True, timeout=TIMEOUT_S
    )


@pytest.mark.parametrize("inventory", INVENTORIES)
def test_inventory_has_no_problem(inventory):
    result = run("ansible-playbook", "-i", f"inventories/{inventory}", "playbooks/validate.yml")
    assert result.returncode == 0, result.stdout


@pytest.mark.parametrize("limit", [[], ["--limit", "compute"]], ids=["all", "limit"])
def test_problem_stops_the_run(limit):
    result = run("ansible-playbook", "playbooks/validate.yml", "-e", "cluster_nam=1", *limit)
    assert result.returncode != 0
    assert "unknown variable: ''cluster_nam''" in result.stdout


def test_unparsed_inventory_is_refused(tmp_path):
    (tmp_path / "hosts.yml").write_text("all: [\n")
    result = run("ansible-inventory", "-i", tmp_path, "--list")
    assert result.returncode != 0
    assert f"Completely failed to parse inventory source {tmp_path}" in result.stderr


def test_empty_inventory_is_refused(tmp_path):
    (tmp_path / "hosts.yml").write_text("all: {}\n")
    result = run("ansible-playbook", "-i", tmp_path, "playbooks/validate.yml")
    assert result.returncode != 0
    assert "the inventory has no hosts; pass one with -i" in result.stdout
