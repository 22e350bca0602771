"""The module `local_keys`: SSH keys of the test bed, each made whole or not at all, in place of one that is damaged."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from ansible.module_utils.basic import AnsibleModule


def make(module: AnsibleModule, path: Path, comment: str) -> None:
    """Make a key and its public half; the private one comes last, so that a cut leaves a pair that is made again."""
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=f".{path.name}.") as folder:
        new = Path(folder, "key")
        module.run_command(
            ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", comment, "-f", str(new)], check_rc=True
        )
        for source, place in ((new.with_suffix(".pub"), path.with_name(f"{path.name}.pub")), (new, path)):
            with source.open("rb") as file:
                os.fsync(file.fileno())
            source.replace(place)


def main() -> None:
    """Make those that `keys` (path -> comment) names."""
    module = AnsibleModule({"keys": {"type": "dict", "required": True}}, supports_check_mode=True)
    keys = module.params["keys"]
    try:
        for path, comment in [] if module.check_mode else keys.items():
            make(module, Path(path), comment)
    except OSError as error:
        module.fail_json(msg=str(error))
    module.exit_json(changed=bool(keys), paths=sorted(keys))


if __name__ == "__main__":
    main()
