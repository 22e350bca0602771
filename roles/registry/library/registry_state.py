"""The module `registry_state`: all that role registry must know of its host before it changes anything."""

from __future__ import annotations

from pathlib import Path

from ansible.module_utils.basic import AnsibleModule

PROGRAMS = (Path("/usr/bin/docker-registry"), Path("/usr/bin/skopeo"))


def main() -> None:
    """Tell whether the programs are there, and what files hold, "" for none; nothing is changed."""
    options = {"files": {"type": "list", "elements": "path", "required": True}}
    module = AnsibleModule(options, supports_check_mode=True)
    files = [Path(path) for path in module.params["files"]]
    module.exit_json(
        changed=False,
        installed=all(program.exists() for program in PROGRAMS),
        texts=[path.read_text() if path.is_file() else "" for path in files],
    )


if __name__ == "__main__":
    main()
