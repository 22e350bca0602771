"""The module `apptainer_state`: what the role asks of a host, all in one go; nothing is changed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.dpkg import installed, question

PROGRAM = Path("/usr/bin/apptainer")
SUBIDS = ("/etc/subuid", "/etc/subgid")
TARGETS = ["apt-get", "indextargets", "--format", "$(RELEASE) $(REPO_URI) $(COMPONENT)", "Created-By: Packages"]


def text(path: Path) -> str:
    """Return what a file holds, "" where there is none."""
    return path.read_text() if path.is_file() else ""


def indexes(module: AnsibleModule) -> str:
    """Return which indexes of packages apt is set to, `release URI component` each.

    Asked itself, apt-get reads all of their packages first where it has no cache, for seconds.
    """
    try:
        import apt_pkg  # Debian's own Python has it where python3-apt is installed
    except ImportError:
        return str(module.run_command(TARGETS, check_rc=True)[1])
    return listed(apt_pkg)


def listed(apt: Any) -> str:
    """Return the same as `apt-get indextargets`, of python-apt's list of sources."""
    apt.init_config()
    apt.init_system()
    sources = apt.SourceList()
    sources.read_main_list()
    return "".join(
        f"{source.dist} {source.uri} {component}\n"
        for source in sources.list
        for component in dict.fromkeys(map(component_of, source.index_files))
        if component
    )


def component_of(index: Any) -> str:
    """Return the component of an index of packages, e.g. of `http://mirror/debian trixie/main amd64 Packages (...)`."""
    words = index.describe.split()
    return words[1].rpartition("/")[2] if len(words) > 3 and words[3] == "Packages" else ""


def main() -> None:
    """Return the state."""
    options = {
        "networks": {"type": "path", "required": True},
        "sid": {"type": "list", "elements": "path", "default": []},
    }
    module = AnsibleModule(options, supports_check_mode=True)
    folder = Path(module.params["networks"])
    _, output, _ = module.run_command(question(["apptainer"]))
    package = installed(output).get("apptainer")
    defaults = ""
    if PROGRAM.exists():
        _, defaults, _ = module.run_command([str(PROGRAM), "confgen", "/dev/stdout"], check_rc=True)
    module.exit_json(
        changed=False,
        installed=PROGRAM.exists(),
        version=package.version if package else "",
        targets=indexes(module),
        defaults=defaults,
        sid=[text(Path(file)) for file in module.params["sid"]],
        subids=[text(Path(file)) for file in SUBIDS],
        networks=sorted(map(str, folder.iterdir())) if folder.is_dir() else [],
    )


if __name__ == "__main__":
    main()
