"""Another version of this tree: what its runs leave on hosts is of another content, and in part of another form."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from tests.support.clusters.cluster import ROOT

# File -> (what it has, what another version has there).
CHANGES = {
    "roles/slurm/vars/main.yml": ("SlurmctldTimeout: 60", "SlurmctldTimeout: 61"),
    "roles/slurm/templates/dropin.conf.j2": ("[Unit]", "# Of another version.\n[Unit]"),
    # A record that this tree cannot read.
    "library/host_units.py": ("json.dumps(record._asdict())", "json.dumps(record._asdict() | {'since': 'then'})"),
    "src/isthmus/__init__.py": ('"""', '"""Another version. '),
}


def copy(folder: Path) -> Path:
    """Copy the tree as git knows it, work that is not committed too."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        check=True,
    )
    for name in filter(None, listed.stdout.decode().split("\0")):
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / name).exists():
            shutil.copy2(ROOT / name, target, follow_symlinks=False)
    return folder


def make(folder: Path) -> Path:
    """Copy the tree and change it."""
    copy(folder)
    for name, (here, there) in CHANGES.items():
        text = (folder / name).read_text()
        assert here in text, f"{name} has no {here!r} any more; change tests/support/clusters/other_tree.py"
        (folder / name).write_text(text.replace(here, there, 1))
    return folder
