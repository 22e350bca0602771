"""The module `slurm_headers`: the headers of one version of Slurm, laid out in a folder, without installing them."""

from __future__ import annotations

import re
from pathlib import Path

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.dpkg import offered

PACKAGE = "libslurm-dev"


def choose(found: list[tuple[str, str]], wanted: str) -> str:
    """The newest Debian version of an upstream version among names and versions, "" for none."""
    return next((each for _, each in found if re.split(r"[-+]", each)[0] == wanted), "")


def main() -> None:
    """Fetch and unpack."""
    text = {"type": "str", "required": True}
    module = AnsibleModule({"version": text, "folder": {"type": "path", "required": True}}, supports_check_mode=False)
    wanted, folder = module.params["version"], Path(module.params["folder"])
    _, output, _ = module.run_command(["apt-cache", "madison", PACKAGE])
    version = choose(offered(output), wanted)
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
