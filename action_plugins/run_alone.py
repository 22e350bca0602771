"""The task `run_alone`: refuses a second run of the same kind while another process of Ansible holds its file.

The file names the process and when it began, so that one which was killed holds nothing up, and no other process that
got its number is taken for it.
"""

import os
from pathlib import Path
from typing import Any

from ansible.plugins.action import ActionBase

STARTED = 19


def began(process: int) -> str:
    """When a process began, "" for one that is gone."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[STARTED]
    except OSError:
        return ""


def holder(file: Path) -> int:
    """The process that holds a file, 0 for none that lives."""
    try:
        process, start = file.read_text().split()
        return int(process) if began(int(process)) == start else 0
    except (OSError, ValueError):
        return 0


class ActionModule(ActionBase):
    """What Ansible looks for in this file."""

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Take the file; the run is the process that this worker is a child of."""
        result: dict[str, Any] = super().run(tmp, task_vars)
        file, run = Path(self._task.args["file"]), os.getppid()
        other = holder(file)
        if other not in (0, run):
            why = (
                f"another {self._task.args['what']} runs as process {other}; wait for its end, or end it: kill {other}"
            )
            return result | {"failed": True, "msg": why}
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        temporary = file.with_name(f".{file.name}.{run}")
        temporary.write_text(f"{run} {began(run)}\n")
        temporary.replace(file)
        return result | {"changed": False}
