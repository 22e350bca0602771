"""Upgrades and ways back as an admin runs them, and what hosts have and run then."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path

from tests.support.clusters import playbooks
from tests.support.clusters.cluster import ROOT, Node

UPGRADE = "playbooks/upgrade.yml"
# From the distribution's Slurm to Debian testing's.
NEW = {"slurm_version": "26.05", "slurm_package_source": "forky"}
FIGURES = ROOT / "results/upgrade.json"


def upgrade(log: str, *arguments: str, **variables: object) -> playbooks.Result:
    """Upgrade to NEW, with other variables."""
    return playbooks.play(log, UPGRADE, "-e", json.dumps(NEW | variables), *arguments)


def program(node: Node, daemon: str) -> str:
    """Return the file that a daemon runs of."""
    return node.output(f"readlink /proc/$(pidof -s {daemon})/exe")


def versions(controller: Node) -> dict[str, str]:
    """Return the Slurm of each node, as it has registered."""
    shown = controller.output("sinfo --Node --noheader --format='%N %v'")
    return dict(line.split() for line in shown.splitlines())


def daemons(controller: Node) -> str:
    """Return the processes of the controller's daemons: others after any restart."""
    return controller.output("systemctl show --property=MainPID slurmdbd slurmctld")


def words(output: str) -> str:
    """Return a message as one line, however Ansible has wrapped it."""
    return re.sub(r"\s+", " ", output)


def back(log: str, controller: Node) -> playbooks.Result:
    """Go back by the newest backup that has what was saved while the daemons stood still."""
    folder = max(Path(controller.variables["state_dir"], "backups").glob("*/stopped")).parent
    confirmed = ["-e", f"backup_from={folder}", "-e", f"backup_confirm={controller.variables['name']}"]
    return playbooks.succeed(log, "playbooks/restore.yml", *confirmed, "-e", "restore_packages=true")


def record(**figures: float | str) -> None:
    """Write down what an upgrade took, beside what is there."""
    FIGURES.parent.mkdir(exist_ok=True)
    kept = json.loads(FIGURES.read_text()) if FIGURES.exists() else []
    FIGURES.write_text(
        json.dumps([*kept, {"at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), **figures}], indent=1)
    )
