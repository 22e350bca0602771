"""The module `flannel_settings`: what flanneld reads in etcd, and whose it is.

It runs with the Python of the nodes' programs, whose client of etcd it uses.
"""

from __future__ import annotations

import traceback
from pathlib import Path

from ansible.module_utils.basic import AnsibleModule, missing_required_lib
from ansible.module_utils.etcd_options import OPTIONS

try:
    from isthmus.clients.etcd.flannel import USER, RefusedError, apply
    from isthmus.clients.etcd.store import Access, EtcdError
except ImportError:
    MISSING = traceback.format_exc()
else:
    MISSING = ""

ARGUMENTS = {
    **OPTIONS,
    "password": {"type": "str", "required": True, "no_log": True},
    "prefix": {"type": "str", "required": True},
    "owner": {"type": "str", "required": True},
    "config": {"type": "dict", "required": True},
}


def main() -> None:
    """Bring the configuration about, or remove it where it is empty."""
    module = AnsibleModule(ARGUMENTS, supports_check_mode=True)
    if MISSING:
        module.fail_json(msg=missing_required_lib("isthmus"), exception=MISSING)
    given = module.params
    files = (Path(given[name]) for name in ("ca", "certificate", "key"))
    access = Access(tuple(given["endpoints"]), *files, user=USER, password=given["password"])
    try:
        done = apply(access, given["prefix"], given["owner"], given["config"], dry=module.check_mode)
    except (EtcdError, RefusedError) as error:
        module.fail_json(msg=str(error))
    module.exit_json(changed=bool(done), done=done)


if __name__ == "__main__":
    main()
