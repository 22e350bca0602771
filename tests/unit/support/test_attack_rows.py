"""Rows of attacks count the ways of all processes that attacked."""

import json
import os
import subprocess
import sys

import pytest

from tests.repo.tree import ROOT

CONFTEST = """
from pathlib import Path
from tests.support.attacks import rows

def pytest_configure(config):
    config.pluginmanager.register(rows.Rows(Path("kept/rows.json")))

def pytest_collection_modifyitems(items):
    for item in items:
        if item.name != "test_other":
            rows.belong(item, "S1", item.function.__name__)
"""
TESTS = """
import pytest

@pytest.fixture
def broken():
    assert False

@pytest.mark.parametrize("way", range(6))
def test_ways(way):
    if way == 4:
        pytest.skip("not here")
    assert way != 5

def test_unprepared(broken):
    pass

def test_other():
    pass
"""


@pytest.mark.parametrize("processes", ["0", "2"])
def test_ways_of_all_processes_are_counted(processes, tmp_path):
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "test_attack.py").write_text(TESTS)
    command = [sys.executable, "-m", "pytest", "-n", processes, "-p", "no:cacheprovider", "."]
    environment = os.environ | {"PYTHONPATH": f"{ROOT}:{os.environ.get('PYTHONPATH', '')}"}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    rows = {row.pop("what"): row for row in json.loads((tmp_path / "kept/rows.json").read_text())["rows"]}
    assert rows == {
        "test_ways": {"finding": "S1", "tried": 5, "passed": 4, "failed": 1, "skipped": 1},
        "test_unprepared": {"finding": "S1", "tried": 1, "failed": 1},
    }
    assert "6 ways tried, 4 blocked, 2 open" in done.stdout
    assert "tried    5  blocked    4  OPEN 1  not applicable 1" in done.stdout
