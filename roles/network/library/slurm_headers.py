"""The module `slurm_headers`: the headers of one version of Slurm, laid out in a folder, without installing them."""

from __future__ import annotations

import re
from pathlib import Path

from ansible.module_utils.basic import AnsibleModule

PACKAGE = "libslurm-dev"


def versions(told: str) -> list[str]:
    """Versions that `apt-cache madison` names, the newest first."""
    fields = ([field.strip() for field in line.split("|")] for line in told.splitlines())
    return [each[1] for each in fields if len(each) > 1]


def choose(found: list[str], wanted: str) -> str:
    """The newest Debian version of an upstream version, "" for none."""
    return next((each for each in found if re.split(r"[-+]", each)[0] == wanted), "")


def main() -> None:
    """Fetch and unpack."""
    text = {"type": "str", "required": True}
    module = AnsibleModule({"version": text, "folder": {"type": "path", "required": True}}, supports_check_mode=False)
    wanted, folder = module.params["version"], Path(module.params["folder"])
    _, told, _ = module.run_command(["apt-cache", "madison", PACKAGE])
    version = choose(versions(told), wanted)
    if not version:
        module.fail_json(
            msg=f"no source of this host has {PACKAGE} {wanted}, with which the plugin for it is built; bring the"
            " hosts to the controller's Slurm (playbooks/upgrade.yml), or set slurm_package_source to where it is from"
        )
    folder.mkdir()
    module.run_command(["apt-get", "download", f"{PACKAGE}={version}"], cwd=str(folder), check_rc=True)
    (package,) = folder.glob("*.deb")
    module.run_command(["dpkg-deb", "--extract", str(package), str(folder)], check_rc=True)
    module.exit_json(changed=True, version=version)


if __name__ == "__main__":
    main()
