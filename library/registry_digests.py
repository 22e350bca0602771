"""The module `registry_digests`: which images a registry has, all asked for in one go; nothing is changed."""

from __future__ import annotations

import re

from ansible.module_utils.basic import AnsibleModule

ABSENT = re.compile(r"(manifest|name) unknown")
IMAGE = {"name": {"type": "str", "required": True}, "tag": {"type": "str", "required": True}}


def main() -> None:
    """Return the digest of each image, "" where the registry has none; fail where it does not answer."""
    options = {
        "repository": {"type": "str", "required": True},
        "authfile": {"type": "path", "required": True},
        "images": {"type": "list", "elements": "dict", "required": True, "options": IMAGE},
    }
    module = AnsibleModule(options, supports_check_mode=True)
    given = module.params
    command = ["skopeo", "inspect", "--no-tags", f"--authfile={given['authfile']}", "--format={{.Digest}}"]
    found = []
    for image in given["images"]:
        reference = f"docker://{given['repository']}/{image['name']}:{image['tag']}"
        rc, digest, said = module.run_command([*command, reference])
        if rc and not ABSENT.search(said):
            module.fail_json(msg=f"{reference}: {said.strip()}")
        found.append(image | {"digest": "" if rc else digest.strip()})
    module.exit_json(changed=False, images=found)


if __name__ == "__main__":
    main()
