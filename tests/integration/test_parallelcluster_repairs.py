"""The stand-in for AWS is moto with repairs; one that moto no longer needs must go."""

import json
import os
import subprocess

import pytest

from tests.support.clusters.cluster import ROOT
from tests.support.parallelcluster.region import NAMES
from tests.support.parallelcluster.venvs import venv

REPAIRS = ["outputs of nested stacks", "instances of launch templates", "resources that moto has none of"]


@pytest.fixture(scope="module")
def reported():
    command = [venv("moto") / "bin/python", ROOT / "tests/support/parallelcluster/needed.py"]
    run = subprocess.run(command, env={**os.environ, **NAMES}, capture_output=True, text=True, timeout=120, check=True)
    return json.loads(run.stdout)


def test_all_repairs_are_tried(reported):
    assert [*reported] == REPAIRS


@pytest.mark.parametrize("name", REPAIRS)
def test_repair_is_still_needed_and_works(reported, name):
    assert reported[name]["without"]
    assert reported[name]["with"] == ""
