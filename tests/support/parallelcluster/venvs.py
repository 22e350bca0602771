"""Venvs of locks that no deployer needs, made once and kept in the deployer's cache."""

import os
import subprocess
import sys
from hashlib import sha256
from pathlib import Path

from tests.support.clusters.cluster import ROOT

CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "isthmus/venvs"


def venv(lock):
    """Return the folder of a venv with what locks/LOCK.txt names."""
    path = ROOT / f"locks/{lock}.txt"
    folder = CACHE / f"{lock}-{sha256(path.read_bytes()).hexdigest()[:16]}"
    make = ROOT / "roles/provider_parallelcluster/files/venv.sh"
    subprocess.run([make, sys.executable, path, folder], check=True, timeout=900)
    return folder
