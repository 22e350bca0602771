"""Benchmarks are run by hand; that they still start what they measure is seen here, on few nodes."""

import json
import subprocess
import sys

from tests.support.clusters.cluster import ROOT


def test_simulated_nodes_are_given_networks():
    result = ROOT / "results" / "network_scale_quick.json"
    result.unlink(missing_ok=True)
    command = [sys.executable, "-m", "tests.bench.network_scale", "--quick"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(result.read_text())
    assert [*found["swarm"]] == ["2", "4", "8"]
    assert all(each["jobs"] == 3 for each in found["swarm"].values())
