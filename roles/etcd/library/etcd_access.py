"""The module `etcd_access`: users, roles and rights of etcd, as a list has them.

It runs with the Python of the nodes' programs, whose client of etcd it uses.
"""

from __future__ import annotations

import traceback
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule, missing_required_lib
from ansible.module_utils.etcd_options import OPTIONS

try:
    from isthmus.clients.etcd.access import ROOT, Account, Permission, Right, apply
    from isthmus.clients.etcd.store import Access, DeniedError, EtcdError
except ImportError:
    MISSING = traceback.format_exc()
else:
    MISSING = ""

ARGUMENTS = {
    **OPTIONS,
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
    accounts = [_account(each) for each in module.params["accounts"]]
    root = next(account for account in accounts if account.name == ROOT)
    files = (Path(module.params[name]) for name in ("ca", "certificate", "key"))
    try:
        access = Access(tuple(module.params["endpoints"]), *files, user=ROOT, password=root.password)
        done = apply(access, accounts, dry=module.check_mode)
    except DeniedError as error:
        module.fail_json(
            msg=f"etcd refuses root's password ({error}); bring the deployer's folder of this cluster back, with"
            " playbooks/adopt_secrets.yml or from where it was copied to"
        )
    except EtcdError as error:
        module.fail_json(msg=f"etcd: {error}")
    module.exit_json(changed=bool(done), done=done)


def _account(given: dict[str, Any]) -> Account:
    permissions = (Permission.below(grant["prefix"], Right(grant["access"])) for grant in given["grants"])
    return Account(given["name"], given["password"], frozenset(permissions))


if __name__ == "__main__":
    main()
