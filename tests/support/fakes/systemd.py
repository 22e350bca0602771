"""One unit of systemd, as `systemctl` shows and changes it, for tests of modules that call it."""

import time
from pathlib import Path


class Systemd:
    """Plays systemctl for the unit `demo`, and any other command, which only succeeds or is refused."""

    def __init__(self) -> None:
        self.load, self.active, self.enabled = "loaded", "inactive", "disabled"
        self.outdated = self.broken = False
        self.changed: set[str] = set()  # other units whose files changed
        self.invocation, self.began = "", 0  # microseconds since boot
        self._starts = 0
        self.refuses: set[str] = set()
        self.done: list[str] = []

    def run(self, argv: list[str]) -> tuple[int, str, str]:
        """Answer a command as AnsibleModule.run_command does."""
        program, *rest = argv
        if program != "systemctl":
            self.done.append(" ".join(argv))
            return (1, "", "refused") if program in self.refuses else (0, "", "")
        if rest[0] == "show":
            return 0, "\n".join(map(self._shown, rest[3:])), ""
        return self._change(*rest)

    def start_before(self, file: Path) -> None:
        """Start it as somebody else would, before this file was last changed."""
        self._begin(file.stat().st_ctime - 5)

    def start_after(self, file: Path) -> None:
        """The same, after it."""
        self._begin(file.stat().st_ctime + 5)

    def _begin(self, when: float) -> None:
        boot = time.time() - time.clock_gettime(time.CLOCK_MONOTONIC)
        self.active, self.began = "active", int((when - boot) * 1e6)
        self._starts += 1
        self.invocation = f"{self._starts:032x}"

    def _change(self, verb: str, *_names: str) -> tuple[int, str, str]:
        self.done.append(" ".join([verb, *_names]))
        if self.broken:
            return 1, "", "Job failed"
        if verb == "daemon-reload":
            self.outdated = False
            self.changed.clear()
        elif verb == "enable":
            self.enabled = "enabled"
        else:
            self._begin(time.time())
        return 0, "", ""

    def _shown(self, name: str) -> str:
        rows = {
            "LoadState": self.load,
            "ActiveState": self.active,
            "UnitFileState": self.enabled,
            "NeedDaemonReload": "yes" if self.outdated or name in self.changed else "no",
            "InvocationID": self.invocation,
            "ExecMainStartTimestampMonotonic": str(self.began),
        }
        return "".join(f"{key}={value}\n" for key, value in rows.items())
