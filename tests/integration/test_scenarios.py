"""Molecule itself reads every scenario; one it cannot read must not go unnoticed."""

import os
import re
import subprocess

from tests.support.clusters.cluster import BIN, ROOT

FOLDERS = {path.parent.name for path in (ROOT / "molecule").glob("*/molecule.yml")}


def test_molecule_reads_every_scenario():
    environment = os.environ | {"PATH": f"{BIN}:{os.environ['PATH']}", "NO_COLOR": "1"}
    reported = subprocess.run(
        ["molecule", "list", "--format", "yaml"], cwd=ROOT, env=environment, capture_output=True, text=True
    )
    assert reported.returncode == 0, reported.stdout + reported.stderr
    assert set(re.findall(r"Scenario Name: (\S+)", reported.stdout)) == FOLDERS
