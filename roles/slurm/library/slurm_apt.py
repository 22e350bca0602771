"""The module `slurm_apt`: which Slurm apt may choose on this host, and the suite of Debian that it comes from.

The pin is written before the source, so that nothing of another suite is ever in reach but Slurm and the two libraries
that it alone needs newer. Neither a version nor a suite removes both files.
"""

from __future__ import annotations

import re
from pathlib import Path

from ansible.module_utils.basic import AnsibleModule

PREFERENCES = Path("/etc/apt/preferences.d/isthmus-slurm")
SOURCES = Path("/etc/apt/sources.list.d/isthmus-slurm.sources")
RELEASE = Path("/etc/os-release")
MARK = "# Managed by Ansible (role slurm): changes are overwritten.\n"
UPDATE = ["apt-get", "update"]
TARGETS = ["apt-get", "indextargets", "--format", "$(RELEASE) $(REPO_URI)", "Created-By: Packages"]
SLURM = "src:slurm-wlm"
# A mirror's copy of such a suite may be older than a week, which is how long its lists count.
VALID_S = 90 * 24 * 3600
# Slurm's HTTP parser, and the library of topology, whose newer version is a backport.
FROM_SUITE, FROM_BACKPORTS = "src:llhttp", "src:hwloc"


def record(package: str, pin: str, priority: int) -> str:
    """One record of apt_preferences(5)."""
    return f"Package: {package}\nPin: {pin}\nPin-Priority: {priority}\n"


def preferences(version: str, suite: str, codename: str) -> str:
    """The pins; "" for none. A record for a package counts before those for all."""
    slurm = f"version {version}*" if version else f"release n={suite}"
    records = [record(SLURM, slurm, 990)] if version or suite else []
    if suite:
        backports = f"release n={codename}-backports"
        records += [record(FROM_SUITE, f"release n={suite}", 990), record(FROM_BACKPORTS, backports, 990)]
        records += [record("*", f"release n={suite}", -1), record("*", backports, 100)]
    return MARK + "\n".join(records) if records else ""


def sources(suite: str, codename: str, mirror: str) -> str:
    """The source; "" for none."""
    if not suite:
        return ""
    entry = f"Types: deb\nURIs: {mirror}\nSuites: {suite} {codename}-backports\nComponents: main\n"
    return MARK + entry + f"Targets: Packages\nLanguages: none\nValid-Until-Min: {VALID_S}\n"


def mirror(targets: str, codename: str) -> str:
    """Where this host has its own release from.

    Raises:
        ValueError: from nowhere.
    """
    found = [line.split()[1] for line in targets.splitlines() if line.split()[:1] == [codename]]
    if not found:
        raise ValueError(f"apt has no source for {codename} here; bring /etc/apt/sources.list back")
    return found[0]


def own_mirror(module: AnsibleModule, codename: str) -> str:
    """The same, from apt, which names none while it has no lists: they are read then.

    Raises:
        ValueError: from nowhere.
    """
    _, targets, _ = module.run_command(TARGETS)
    try:
        return mirror(targets, codename)
    except ValueError:
        if module.check_mode:
            raise
    module.run_command(UPDATE, check_rc=True)
    _, targets, _ = module.run_command(TARGETS)
    return mirror(targets, codename)


def text(path: Path) -> str:
    """A file's text, "" for none."""
    return path.read_text() if path.is_file() else ""


def write(path: Path, content: str) -> None:
    """Write a file whole, or remove it."""
    if not content:
        path.unlink(missing_ok=True)
        return
    temporary = path.with_name(f".{path.name}.new")
    temporary.write_text(content)
    temporary.chmod(0o644)
    temporary.replace(path)


def main() -> None:
    """Bring both files about; apt's lists are read again where a source is new."""
    texts = {"type": "str", "default": ""}
    module = AnsibleModule({"version": texts, "suite": texts}, supports_check_mode=True)
    version, suite = module.params["version"], module.params["suite"]
    codename = re.search(r"^VERSION_CODENAME=(\S+)", text(RELEASE), re.MULTILINE)
    try:
        name = codename[1] if codename else ""
        source = sources(suite, name, own_mirror(module, name) if suite else "")
    except ValueError as error:
        module.fail_json(msg=str(error))
    wanted = {PREFERENCES: preferences(version, suite, name), SOURCES: source}
    changed = [path for path, content in wanted.items() if text(path) != content]
    if not module.check_mode:
        for path in changed:
            write(path, wanted[path])
        if SOURCES in changed:
            module.run_command(UPDATE, check_rc=True)
    module.exit_json(changed=bool(changed), paths=[str(path) for path in changed])


if __name__ == "__main__":
    main()
