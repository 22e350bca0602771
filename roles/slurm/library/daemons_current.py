"""The module `daemons_current`: daemons that run of files which a package has replaced since are restarted.

Only what is installed here counts. One that stands still is started. A unit's record, by which role slurm restarts for
changed settings, is left alone: the settings did not change.
"""

from __future__ import annotations

from pathlib import Path

from ansible.module_utils.basic import AnsibleModule

PROC = Path("/proc")
GONE = " (deleted)"
# Debian's newer packages choose between two builds of a daemon by a link; this is the one for real clusters.
BUILD = "-wlm"


def is_current(proc: Path, name: str) -> bool:
    """Return whether a daemon runs, and all its processes run of the file that is there."""
    states = []
    for process in proc.iterdir():
        try:
            program = str((process / "exe").readlink()) if process.name.isdecimal() else ""
        except OSError:
            continue
        if program.removesuffix(GONE).rpartition("/")[2].removesuffix(BUILD) == name:
            states.append(not program.endswith(GONE))
    return bool(states) and all(states)


def main() -> None:
    """Restart those that need it, in their order."""
    module = AnsibleModule({"names": {"type": "list", "elements": "str", "required": True}}, supports_check_mode=True)
    due = [name for name in module.params["names"] if not is_current(PROC, name)]
    for name in () if module.check_mode else due:
        code, _, error = module.run_command(["systemctl", "restart", name])
        if code or not is_current(PROC, name):
            module.fail_json(msg=f"{name} does not run ({error.strip()}); see `journalctl -u {name}` on this host")
    module.exit_json(changed=bool(due), restarted=due)


if __name__ == "__main__":
    main()
