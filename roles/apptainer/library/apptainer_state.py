"""The module `apptainer_state`: what the role asks of a host, all in one go; nothing is changed."""

from __future__ import annotations

from pathlib import Path

from ansible.module_utils.basic import AnsibleModule

PROGRAM = Path("/usr/bin/apptainer")
SUBIDS = ("/etc/subuid", "/etc/subgid")
VERSION = ["dpkg-query", "--show", "--showformat=${db:Status-Status} ${Version}", "apptainer"]
TARGETS = ["apt-get", "indextargets", "--format", "$(RELEASE) $(REPO_URI) $(COMPONENT)"]


def text(path: Path) -> str:
    """Return what a file holds, "" where there is none."""
    return path.read_text() if path.is_file() else ""


def main() -> None:
    """Tell it."""
    options = {
        "networks": {"type": "path", "required": True},
        "sid": {"type": "list", "elements": "path", "default": []},
    }
    module = AnsibleModule(options, supports_check_mode=True)
    folder = Path(module.params["networks"])
    _, version, _ = module.run_command(VERSION)
    _, targets, _ = module.run_command(TARGETS, check_rc=True)
    defaults = ""
    if PROGRAM.exists():
        _, defaults, _ = module.run_command([str(PROGRAM), "confgen", "/dev/stdout"], check_rc=True)
    module.exit_json(
        changed=False,
        installed=PROGRAM.exists(),
        version=version,
        targets=targets,
        defaults=defaults,
        sid=[text(Path(file)) for file in module.params["sid"]],
        subids=[text(Path(file)) for file in SUBIDS],
        networks=sorted(map(str, folder.iterdir())) if folder.is_dir() else [],
    )


if __name__ == "__main__":
    main()
