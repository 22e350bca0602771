"""The task `host_copies`: `ansible.builtin.copy` for several files, where a host says that it has another or none.

What is brought so are programs and secrets: neither is ever shown as a difference. Folders that lack are made.
"""

from typing import Any

from ansible.plugins.action import ActionBase

from isthmus.filters.copies import Copy, folders, outdated, question

OWNED = {"owner": "root", "group": "root", "mode": "0644"}


class ActionModule(ActionBase):
    """What Ansible looks for in this file."""

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Ask the host once, then copy what it lacks."""
        result: dict[str, Any] = super().run(tmp, task_vars)
        copies = [OWNED | copy for copy in self._task.args["files"]]
        told = self._low_level_execute_command(question(copies))["stdout"] if copies else ""
        lacking = outdated(copies, told)
        if lacking and not self._task.check_mode:
            self._low_level_execute_command(folders(lacking))
            for copy in lacking:
                copied = self._copy(copy, task_vars)
                if copied.get("failed"):
                    return result | copied
        paths = [copy["dest"] for copy in lacking]
        return result | {"changed": bool(paths), "paths": paths}

    def _copy(self, copy: Copy, task_vars: dict[str, Any] | None) -> dict[str, Any]:
        task = self._task.copy()
        task.args, task.diff = dict(copy), False
        action = self._shared_loader_obj.action_loader.get(
            "ansible.builtin.copy",
            task=task,
            connection=self._connection,
            play_context=self._play_context,
            loader=self._loader,
            templar=self._templar,
            shared_loader_obj=self._shared_loader_obj,
        )
        copied: dict[str, Any] = action.run(task_vars=task_vars)
        return copied
