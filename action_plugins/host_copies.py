"""The task `host_copies`: `ansible.builtin.copy` for several files, where a host says that it has another or none.

All that a host lacks goes to it as one archive. What is brought so are programs and secrets: neither is ever shown as a
difference. Folders that lack are made.
"""

import tempfile
from typing import Any

from ansible import constants
from ansible.plugins.action import ActionBase

from isthmus.filters.copies import Copy, outdated, pack, placing, question

OWNED = {"owner": "root", "group": "root", "mode": "0644"}


class ActionModule(ActionBase):
    """What Ansible looks for in this file."""

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Ask the host once, then bring what it lacks."""
        result: dict[str, Any] = super().run(tmp, task_vars)
        copies = [OWNED | copy for copy in self._task.args["files"]]
        output = self._low_level_execute_command(question(copies))["stdout"] if copies else ""
        lacking = outdated(copies, output)
        problem = self._bring(lacking) if lacking and not self._task.check_mode else ""
        if problem:
            return result | {"failed": True, "msg": problem}
        paths = [copy["dest"] for copy in lacking]
        return result | {"changed": bool(paths), "paths": paths}

    def _bring(self, copies: list[Copy]) -> str:
        folder = self._make_tmp_path()
        try:
            there = self._connection._shell.join_path(folder, "copies")
            if len(copies) == 1:
                self._transfer_file(copies[0]["src"], there)
            else:
                with tempfile.NamedTemporaryFile(dir=constants.DEFAULT_LOCAL_TMP) as archive:
                    pack(copies, archive.file)
                    archive.flush()
                    self._transfer_file(archive.name, there)
            done = self._low_level_execute_command(placing(copies, there))
        except OSError as error:
            return f"{error.filename}: {error.strerror}; see the task's files"
        finally:
            self._remove_tmp_path(folder)
        return f"{done['stderr'] or done['stdout']}".strip() or "the host gave no reason" if done["rc"] else ""
