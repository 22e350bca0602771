"""The module `accounts`: groups and users of a host, all in one go, by shadow-utils.

`ansible.builtin.user` and `group` go to the host once for each of them; a site has hundreds of users. What differs is
found by `base_state`; here each of those is reconciled. Homes are another module's.
"""

from __future__ import annotations

import grp
import pwd
from collections.abc import Mapping
from typing import Any

from ansible.module_utils.account_options import OPTIONS
from ansible.module_utils.basic import AnsibleModule


def group_command(wanted: Mapping[str, Any], *, exists: bool) -> list[str]:
    """Return what makes a group, or gives it its number; nothing for one that is there and may have any."""
    if exists and wanted["gid"] is None:
        return []
    number = [] if wanted["gid"] is None else ["--gid", str(wanted["gid"])]
    return ["groupmod" if exists else "groupadd", *number, wanted["name"]]


def user_command(wanted: Mapping[str, Any], *, exists: bool) -> list[str]:
    """Return the command that creates or changes an account: in these groups and in no other."""
    name = wanted["name"]
    fields = {
        "--uid": str(wanted["uid"]),
        "--gid": name,
        "--groups": ",".join(wanted["groups"]),
        "--shell": wanted["shell"],
        "--comment": wanted["comment"],
    }
    words = [word for pair in fields.items() for word in pair]
    return ["usermod", *words, name] if exists else ["useradd", "--no-create-home", *words, name]


def is_known(find: Any, name: str) -> bool:
    """Return whether a database has a name."""
    try:
        return bool(find(name))
    except KeyError:
        return False


class Accounts:
    """Runs what is needed."""

    def __init__(self, module: AnsibleModule) -> None:
        self.module = module
        self.done: list[str] = []

    def run(self, words: list[str], what: str, data: str | None = None) -> None:
        """Run a program of shadow-utils; a check run only says so."""
        self.done.append(what)
        if self.module.check_mode:
            return
        code, out, error = self.module.run_command(words, data=data, binary_data=True)
        if code:
            self.module.fail_json(msg=f"{what}: {words[0]}: {(error or out).strip()}", accounts=self.done)

    def bring(self, asked: Mapping[str, Any]) -> None:
        """Make groups, then users with their passwords, then remove who left.

        Passwords' hashes come by standard input: what stands in a command line everybody on the host may read.
        """
        for group in asked["groups"]:
            if words := group_command(group, exists=is_known(grp.getgrnam, group["name"])):
                self.run(words, f"group {group['name']}")
        for user in asked["users"]:
            words = user_command(user, exists=is_known(pwd.getpwnam, user["name"]))
            self.run(words, f"user {user['name']}")
        if asked["users"]:
            lines = "".join(f"{user['name']}:{user['password']}\n" for user in asked["users"])
            self.run(["chpasswd", "--encrypted"], "passwords", lines)
        for name in asked["absent"]:
            # By force: a process that goes on would keep its account, and stop this run. Files stay.
            if is_known(pwd.getpwnam, name):
                self.run(["userdel", "--force", name], f"user {name} removed")


def main() -> None:
    """Bring all of them about."""
    module = AnsibleModule(OPTIONS, supports_check_mode=True)
    accounts = Accounts(module)
    accounts.bring(module.params)
    lines = "".join(f"{line}\n" for line in accounts.done)
    module.exit_json(changed=bool(accounts.done), accounts=accounts.done, diff={"before": "", "after": lines})


if __name__ == "__main__":
    main()
