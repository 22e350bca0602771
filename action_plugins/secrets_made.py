"""The task `secrets_made`: random secrets in files of the deployer; none is shown, none that is there replaced."""

from typing import Any

from ansible.plugins.action import ActionBase

from isthmus.filters.trust import secrets


class ActionModule(ActionBase):
    """What Ansible looks for in this file."""

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Make those of `files` that lack, of `length` characters."""
        result: dict[str, Any] = super().run(tmp, task_vars)
        lacking = secrets.lacking(self._task.args["files"])
        if not self._task.check_mode:
            for file in lacking:
                try:
                    secrets.make(file, int(self._task.args.get("length", secrets.LENGTH)))
                except OSError as error:
                    return result | {
                        "failed": True,
                        "msg": f"{file}: {error.strerror}; give its folder space and rights",
                    }
        return result | {"changed": bool(lacking), "made": lacking}
