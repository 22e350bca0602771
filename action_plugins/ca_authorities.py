"""The task `ca_authorities`: makes or renews the authorities that the deployer keeps."""

from typing import Any

from ansible.plugins.action import ActionBase

from isthmus.filters.errors import InputError
from isthmus.filters.trust import authority


class ActionModule(ActionBase):
    """What Ansible looks for in this file."""

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Make each of `authorities` (name, files, usages), with `days`."""
        result: dict[str, Any] = super().run(tmp, task_vars)
        wanted = self._task.args["authorities"]
        for each in [] if self._task.check_mode else wanted:
            try:
                authority.make(each["files"], each["name"], each["usages"], int(self._task.args["days"]))
            except OSError as error:
                why = (
                    f"{error.filename or each['files']}: {error.strerror}; give the deployer's folder space and rights"
                )
                return result | {"failed": True, "msg": why}
            except InputError as error:
                return result | {"failed": True, "msg": str(error)}
        return result | {"changed": bool(wanted), "made": [each["name"] for each in wanted]}
