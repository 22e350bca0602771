"""The module `slurm_convert`: accounting's tables become those of the slurmdbd that is installed.

slurmdbd alters tables at its first start, which can take an hour on a large site and must not be cut by a service's
time limit. So it runs in the foreground, as its guide asks, with a limit of its own, until it says that it has started.
`slurmdbd -u` judges, but it alone is not enough: from 24.11 to 26.05 it sees nothing to convert, and columns and keys
are added all the same. What the daemon says goes to a file, which can be followed. Jobs are counted before and after.

The version that last got through is recorded; who knows that one has nothing to do. The record is removed before
packages change.
"""

from __future__ import annotations

import subprocess
import time
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule

DAEMON = "/usr/sbin/slurmdbd"
CONVERTED, DUE = 0, 1
STARTED = "slurmdbd version"
LAST_LINES = 20
# `slurmdbd -u` asks a MariaDB that refuses it again and again, for ever.
LIMIT_S = 60
WITHIN = ("timeout", "--kill-after=5", str(LIMIT_S))
# What timeout(1) returns when it has ended the program, with SIGTERM and with SIGKILL.
ENDED = (124, 137)


class ConversionError(Exception):
    """The tables are not converted."""


def last(log: Path) -> str:
    """The end of the log."""
    return "\n".join(log.read_text(errors="replace").splitlines()[-LAST_LINES:]) if log.exists() else ""


def has_started(log: str) -> bool:
    """Return whether slurmdbd says that it is through with its tables."""
    return any(STARTED in line and line.endswith("started") for line in log.splitlines())


class Conversion:
    """One conversion on this host."""

    def __init__(self, module: AnsibleModule) -> None:
        self.module = module
        self.log = Path(module.params["log"])
        self.record = Path(module.params["record"])

    def state(self) -> int:
        """What `slurmdbd -u` says.

        Raises:
            ConversionError: it cannot read the database.
        """
        code, out, error = self.module.run_command([*WITHIN, "runuser", "--user=slurm", "--", DAEMON, "-u"])
        if code in ENDED:
            raise ConversionError(
                f"`slurmdbd -u` had no answer after {LIMIT_S} s; look whether MariaDB runs and lets slurmdbd's user in"
            )
        if code not in (CONVERTED, DUE):
            raise ConversionError(f"`slurmdbd -u` cannot read the database: {(error or out).strip()}")
        return int(code)

    def version(self) -> str:
        """Of the slurmdbd that is installed."""
        _, out, _ = self.module.run_command([DAEMON, "-V"], check_rc=True)
        return str(out).split()[-1]

    def recorded(self) -> str:
        """The version that got through last with these tables, "" for none."""
        return self.record.read_text().strip() if self.record.exists() else ""

    def jobs(self) -> int:
        """How many jobs accounting knows."""
        tables = f"{self.module.params['cluster']}_job_table"
        question = f"SELECT COUNT(*) FROM `{self.module.params['database']}`.`{tables}`"  # noqa: S608
        _, out, _ = self.module.run_command(
            ["mariadb", "--batch", "--skip-column-names", f"--execute={question}"], check_rc=True
        )
        return int(out)

    def convert(self) -> None:
        """Run slurmdbd until it has converted.

        Raises:
            ConversionError: it ended, or took too long.
        """
        end = time.monotonic() + self.module.params["limit_s"]
        # Itself as slurm: runuser(1) kills its child two seconds after it was asked to end.
        as_slurm: dict[str, Any] = {"user": "slurm", "group": "slurm", "extra_groups": []}
        with self.log.open("wb") as log:
            daemon = subprocess.Popen([DAEMON, "-D", "-v"], stdout=log, stderr=log, **as_slurm)  # noqa: S603
            try:
                self._wait(daemon, end)
            finally:
                daemon.terminate()
                daemon.wait(60)

    def _wait(self, daemon: subprocess.Popen[bytes], end: float) -> None:
        while not has_started(last(self.log)):
            if daemon.poll() is not None:
                raise ConversionError(f"slurmdbd ended with status {daemon.returncode}")
            if time.monotonic() > end:
                raise ConversionError(f"it has not ended after {self.module.params['limit_s']} s (slurm_conversion_s)")
            time.sleep(1)


def main() -> None:
    """Convert where that is due."""
    text = {"type": "str", "required": True}
    options = {
        "cluster": text,
        "database": text,
        "limit_s": {"type": "int", "required": True},
        "log": {"type": "path", "required": True},
        "record": {"type": "path", "required": True},
    }
    module = AnsibleModule(options, supports_check_mode=False)
    conversion, begun = Conversion(module), time.monotonic()
    try:
        version = conversion.version()
        if conversion.state() == CONVERTED and conversion.recorded() == version:
            module.exit_json(changed=False)
        before = conversion.jobs()
        conversion.convert()
        if (after := conversion.jobs()) != before:
            raise ConversionError(f"accounting had {before} jobs before, and has {after} now")
        if conversion.state() != CONVERTED:
            raise ConversionError("slurmdbd started, and `slurmdbd -u` finds its tables old")
        conversion.record.parent.mkdir(parents=True, exist_ok=True)
        conversion.record.write_text(f"{version}\n")
    except (ConversionError, OSError, subprocess.SubprocessError) as error:
        module.fail_json(
            msg=f"accounting was not converted: {error}; the end of {conversion.log}:\n{last(conversion.log)}"
        )
    module.exit_json(changed=True, jobs=before, seconds=round(time.monotonic() - begun, 1))


if __name__ == "__main__":
    main()
