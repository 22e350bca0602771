"""The task `artifacts_package`: `isthmus.artifacts.package` for Ansible, on the deployer, with progress."""

from typing import Any

from ansible.plugins.action import ActionBase
from ansible.utils.display import Display

from isthmus.artifacts.package import run


class ActionModule(ActionBase):
    """What Ansible looks for in this file."""

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Build the package, or find it in the cache."""
        return run(self._task.args, Display().display, dry=self._task.check_mode)
