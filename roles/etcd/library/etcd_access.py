"""The module `etcd_access`: users, roles and rights of etcd, as a list has them.

It runs with the Python of the nodes' programs, whose client of etcd it uses.
"""

from __future__ import annotations

import traceback

from ansible.module_utils.basic import AnsibleModule, missing_required_lib

try:
    from isthmus.clients.etcd import DeniedError, EtcdError, load_access
    from isthmus.clients.etcd_access import Account, Permission, Right, settle
except ImportError:
    MISSING = traceback.format_exc()
else:
    MISSING = ""

ARGUMENTS = {
    "access_file": {"type": "path", "required": True},
    "accounts": {
        "type": "list",
        "elements": "dict",
        "required": True,
        "options": {
            "name": {"type": "str", "required": True},
            "password": {"type": "str", "required": True, "no_log": True},
            "grants": {"type": "list", "elements": "dict", "required": True},
        },
    },
}


def main() -> None:
    """Bring the accounts about."""
    module = AnsibleModule(ARGUMENTS, supports_check_mode=True)
    if MISSING:
        module.fail_json(msg=missing_required_lib("isthmus"), exception=MISSING)
    accounts = [
        Account(
            each["name"],
            each["password"],
            frozenset(Permission.below(grant["prefix"], Right(grant["access"])) for grant in each["grants"]),
        )
        for each in module.params["accounts"]
    ]
    try:
        done = settle(load_access(module.params["access_file"]), accounts, dry=module.check_mode)
    except DeniedError as error:
        module.fail_json(
            msg=f"etcd refuses root's password ({error}); bring the deployer's folder of this cluster back, with"
            " playbooks/adopt_secrets.yml or from where it was copied to"
        )
    except EtcdError as error:
        module.fail_json(msg=f"etcd: {error}")
    module.exit_json(changed=bool(done), done=done)


if __name__ == "__main__":
    main()
