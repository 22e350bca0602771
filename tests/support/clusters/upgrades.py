"""Upgrades and ways back as an admin runs them, and what hosts have and run then."""

from __future__ import annotations

from pathlib import Path

from tests.support.clusters import playbooks
from tests.support.clusters.cluster import Node

UPGRADE = "playbooks/upgrade.yml"


def program(node: Node, daemon: str) -> str:
    """Return the file that a daemon runs of."""
    return node.output(f"readlink /proc/$(pidof -s {daemon})/exe")


def back(log: str, controller: Node) -> playbooks.Result:
    """Go back by the newest backup that has what was saved while the daemons stood still."""
    folder = max(Path(controller.variables["state_dir"], "backups").glob("*/stopped")).parent
    confirmed = ["-e", f"backup_from={folder}", "-e", f"backup_confirm={controller.variables['name']}"]
    return playbooks.succeed(log, "playbooks/restore.yml", *confirmed, "-e", "restore_packages=true")
