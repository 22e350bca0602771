"""The module `node_hold`, on the controller: keeps new jobs off a node while a playbook works on it.

Slurm keeps one reason for a node. A node that somebody else has drained is left as it is: no job comes there anyway,
and it stays drained afterwards. Only a drain whose reason begins with `owner` is lifted.
"""

from __future__ import annotations

import re
import time

from ansible.module_utils.basic import AnsibleModule

STATES = re.compile(r" State=(\S+)")
REASON = re.compile(r" Reason=(.*?)(?: \[\S+@\S+\])?(?: Comment=|\s*$)")
VERSION = re.compile(r" Version=(\S+)")
AWAY = {"NOT_RESPONDING", "DOWN", "UNKNOWN"}


def decide(shown: str, wanted: str, owner: str, reason: str) -> dict[str, str]:
    """What to set for a node; nothing to leave it."""
    drained, found = "DRAIN" in flags(shown), REASON.search(shown)
    if wanted == "held":
        return {} if drained else {"State": "DRAIN", "Reason": f"{owner} {reason}".strip()}
    return {"State": "RESUME"} if drained and found and found[1].startswith(owner) else {}


def flags(shown: str) -> set[str]:
    """A node's state and its flags."""
    states = STATES.search(shown)
    return {*states[1].replace("*", "+NOT_RESPONDING").split("+")} if states else set()


def is_back(shown: str, version: str) -> bool:
    """Return whether slurmctld hears a node's slurmd, in a version if one is named; a Debian one has a revision."""
    found = VERSION.search(shown)
    version_shown = found[1] if found else ""
    right = not version or version == version_shown or version.startswith((f"{version_shown}-", f"{version_shown}+"))
    return bool(version_shown) and right and not flags(shown) & AWAY


class Node:
    """A node, as slurmctld knows it."""

    def __init__(self, module: AnsibleModule) -> None:
        self.module = module
        self.name = module.params["node"]

    def show(self) -> str:
        """What slurmctld says of it; "" while it does not answer."""
        code, out, _ = self.module.run_command(["scontrol", "--oneliner", "show", "node", self.name])
        return "" if code else str(out)

    def wait(self) -> str:
        """Wait until slurmctld answers; and until it hears the node, in its version, where that is wanted."""
        hears = self.module.params["heard"] or bool(self.module.params["version"])
        version, end = self.module.params["version"], time.monotonic() + self.module.params["timeout_s"]
        while True:
            shown = self.show()
            if shown and (not hears or is_back(shown, version)):
                return shown
            if time.monotonic() > end:
                self.module.fail_json(
                    msg=f"slurmctld has not heard of {self.name} with Slurm {version or '(any)'}: {shown.strip()};"
                    " see `journalctl -u slurmd` there and slurmctld.log here, and run this again"
                )
            time.sleep(0.5)


def main() -> None:
    """Hold a node, or let it go."""
    options = {
        "node": {"type": "str", "required": True},
        "state": {"type": "str", "choices": ["held", "free"], "required": True},
        "owner": {"type": "str", "required": True},
        "reason": {"type": "str", "default": ""},
        "version": {"type": "str", "default": ""},
        "heard": {"type": "bool", "default": False},
        "timeout_s": {"type": "int", "default": 90},
    }
    module = AnsibleModule(options, supports_check_mode=True)
    shown = Node(module).wait()
    changes = decide(shown, *(module.params[name] for name in ("state", "owner", "reason")))
    if changes and not module.check_mode:
        words = [f"{key}={value}" for key, value in changes.items()]
        module.run_command(["scontrol", "update", f"NodeName={module.params['node']}", *words], check_rc=True)
    module.exit_json(changed=bool(changes))


if __name__ == "__main__":
    main()
