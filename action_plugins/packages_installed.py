"""The task `packages_installed`: `ansible.builtin.apt` with a list of names, where dpkg says that one is lacking.

apt's module takes a second of each host to find that nothing is to be done.
"""

from typing import Any

from ansible.plugins.action import ActionBase

from isthmus.filters.packages import lacking, question


class ActionModule(ActionBase):
    """What Ansible looks for in this file."""

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Ask dpkg, then perhaps apt."""
        result: dict[str, Any] = super().run(tmp, task_vars)
        names = self._task.args["name"]
        output = self._low_level_execute_command(question(names))["stdout"]
        if not lacking(names, output):
            return result | {"changed": False}
        arguments = self._task.args
        return result | self._execute_module("ansible.builtin.apt", module_args=arguments, task_vars=task_vars)
