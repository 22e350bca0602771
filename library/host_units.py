"""The module `host_units`: several units of systemd that are enabled, run, and run on the files that are there.

A restart follows from state, not from an event. A record beside each unit says which contents of `files` its process
began with, and which of `reload_files` it was last made to read; where these differ from what is there, a restart or
reload is due. So a run that was cut between a file and its restart heals in the next one.
A process that somebody else started (an admin, systemd after a crash, a boot) is known by its invocation id. Of such
a one there is no record, but it has begun after or before its files were last changed.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

from ansible.module_utils.basic import AnsibleModule

RECORDS = Path("/var/lib/isthmus/units")
UNITS = Path("/etc/systemd/system")
COMMAND = {"type": "list", "elements": "str", "default": []}
UNIT = {
    "name": {"type": "str", "required": True},
    "files": {"type": "list", "elements": "path", "default": []},
    "reload": COMMAND,
    "reload_files": {"type": "list", "elements": "path", "default": []},
    "ready": COMMAND,
    "timeout_s": {"type": "int", "default": 60},
}
SHOWN = "LoadState,ActiveState,UnitFileState,NeedDaemonReload,InvocationID,ExecMainStartTimestampMonotonic"
ENABLED = {"enabled", "static", "indirect", "alias", "generated"}
RUNS = {"active", "reloading", "refreshing"}
DONE = {"enable": "enabled", "start": "started", "restart": "restarted", "reload": "reloaded"}


class UnitError(Exception):
    """A unit cannot be brought to what is wanted."""


class Unit(NamedTuple):
    """What systemd says of a unit."""

    load: str
    enabled: bool
    runs: bool
    outdated: bool
    invocation: str
    began: float  # seconds since the epoch by the clock of now, so that a clock that was set does not matter


class Record(NamedTuple):
    """What a unit was given; "" where nobody knows."""

    invocation: str = ""
    files: str = ""
    reloaded: str = ""


class Files(NamedTuple):
    """Files that a unit reads, taken together."""

    digest: str
    changed: float


def read(paths: Sequence[str]) -> Files:
    """Hash files with their names, absent ones too, and find when one of them was last changed."""
    whole, changed = sha256(), 0.0
    for path in map(Path, paths):
        exists = path.exists()
        content = sha256(path.read_bytes()).hexdigest() if exists else "absent"
        whole.update(f"{path} {content}\n".encode())
        # Not mtime, which copies and archives keep.
        changed = max(changed, path.stat().st_ctime if exists else 0.0)
    return Files(whole.hexdigest(), changed)


def others(files: Sequence[str]) -> list[str]:
    """Units whose own files these are: a timer's service, which systemd reads again only on daemon-reload."""
    return [Path(file).name for file in files if Path(file).parent == UNITS]


def restart_is_due(unit: Unit, record: Record, files: Files) -> bool:
    """Return whether a unit's process began with other contents than there are now."""
    if unit.invocation == record.invocation:
        return record.files != files.digest
    return files.changed > unit.began


def reload_is_due(unit: Unit, record: Record, files: Files) -> bool:
    """Return whether a unit, or those that it hands its settings on to, were last made to read other contents."""
    if record.reloaded:
        return record.reloaded != files.digest
    return not unit.runs or files.changed > unit.began


def plan(wanted: dict[str, Any], unit: Unit, record: Record, files: Files, reloaded: Files) -> list[str]:
    """What to do with a unit, in this order."""
    due = {
        "enable": not unit.enabled,
        "start": not unit.runs,
        "restart": unit.runs and restart_is_due(unit, record, files),
        "reload": bool(wanted["reload"]) and reload_is_due(unit, record, reloaded),
    }
    return [action for action, is_due in due.items() if is_due]


def parse(shown: str, began: Callable[[int], float]) -> Unit:
    """Read what `systemctl show` prints of a unit; `began` turns microseconds since boot into a time."""
    output = dict(line.partition("=")[::2] for line in shown.splitlines())
    return Unit(
        output["LoadState"],
        output["UnitFileState"] in ENABLED,
        output["ActiveState"] in RUNS,
        output["NeedDaemonReload"] == "yes",
        output["InvocationID"],
        began(int(output.get("ExecMainStartTimestampMonotonic") or 0)),
    )


class Keeper:
    """Brings units about on this host."""

    def __init__(self, module: AnsibleModule) -> None:
        self.module = module
        self.done: list[str] = []

    def look(self, wanted: Sequence[dict[str, Any]]) -> list[Unit]:
        """Ask systemd for these units; it reads its files again where they, or those they stand for, changed."""
        names = [each["name"] for each in wanted]
        asked = [*names, *(name for each in wanted for name in others(each["files"]))]
        units = self._show(asked)
        if not self.module.check_mode and any(unit.outdated or unit.load == "not-found" for unit in units):
            self._systemctl("daemon-reload")
            units = self._show(asked)
        return units[: len(names)]

    def bring(self, wanted: dict[str, Any], unit: Unit) -> None:
        """Enable, start or restart a unit, wait until it answers, and make it read its settings."""
        name, record = wanted["name"], recall(wanted["name"])
        if unit.load != "loaded" and not self.module.check_mode:
            raise UnitError(f"{name} is {unit.load}; install its package, or `systemctl unmask {name}`")
        files, reloaded = read(wanted["files"]), read(wanted["reload_files"])
        actions = plan(wanted, unit, record, files, reloaded)
        self.done += [f"{name}: {DONE[action]}" for action in actions]
        if self.module.check_mode:
            return
        for action in actions:
            if action != "reload":
                self._systemctl(action, name)
        if {"start", "restart"} & set(actions) or record.invocation != unit.invocation:
            record = Record(self._show([name])[0].invocation, files.digest, record.reloaded)
            keep(name, record)
        self._wait(wanted, "ready")
        if "reload" in actions:
            self._wait(wanted, "reload")
        if wanted["reload"] and record.reloaded != reloaded.digest:
            keep(name, record._replace(reloaded=reloaded.digest))

    def _show(self, names: Sequence[str]) -> list[Unit]:
        # A unit by itself is a line shorter than the answer for several, where empty lines are between them.
        shown = self._systemctl("show", f"--property={SHOWN}", "--", *names)
        since = time.time() - time.clock_gettime(time.CLOCK_MONOTONIC)
        return [parse(block, lambda microseconds: since + microseconds / 1e6) for block in shown.strip().split("\n\n")]

    def _systemctl(self, *arguments: str) -> str:
        code, out, error = self.module.run_command(["systemctl", *arguments])
        if code:
            name = arguments[-1]
            raise UnitError(
                f"systemctl {' '.join(arguments)}: {error.strip()}; see `journalctl -u {name}` on this host"
            )
        return str(out)

    def _wait(self, wanted: dict[str, Any], kind: str) -> None:
        command, end = wanted[kind], time.monotonic() + wanted["timeout_s"]
        while command:
            code, out, error = self.module.run_command(command)
            if not code:
                return
            if time.monotonic() > end:
                why = f"`{' '.join(command)}` failed for {wanted['timeout_s']} s: {(error or out).strip()}"
                raise UnitError(f"{why}; see `journalctl -u {wanted['name']}` on this host")
            time.sleep(1)


def recall(name: str) -> Record:
    """Read a unit's record; one that cannot be read is none."""
    try:
        return Record(**json.loads((RECORDS / f"{name}.json").read_text()))
    except (OSError, ValueError, TypeError):
        return Record()


def keep(name: str, record: Record) -> None:
    """Write a unit's record, whole or not at all."""
    # Hashes of files with short passwords would give those away.
    RECORDS.mkdir(mode=0o700, parents=True, exist_ok=True)
    temporary = RECORDS / f".{name}.json"
    temporary.write_text(json.dumps(record._asdict()))
    temporary.replace(RECORDS / f"{name}.json")


def main() -> None:
    """Bring all of them about, in their order."""
    units = {"type": "list", "elements": "dict", "required": True, "options": UNIT}
    module = AnsibleModule({"units": units}, supports_check_mode=True)
    keeper = Keeper(module)
    wanted = module.params["units"]
    try:
        for each, unit in zip(wanted, keeper.look(wanted), strict=True):
            keeper.bring(each, unit)
    except (UnitError, OSError) as error:
        module.fail_json(msg=str(error), units=keeper.done)
    lines = "".join(f"{line}\n" for line in keeper.done)
    module.exit_json(changed=bool(keeper.done), units=keeper.done, diff={"before": "", "after": lines})


if __name__ == "__main__":
    main()
