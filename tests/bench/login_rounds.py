"""Runs on the login host as root: `ssh HOST true` in rounds, each round in another order; a line of JSON for each run.

Reads {"rounds": n, "user": name, "uid": n, "host": address} from standard input. A second sshd, whose sessions stay on
the host, is started for the time: the same program, and the same lines of PAM but those for login pods.
"""

import json
import random
import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

PORT = 2299
SERVICE, PID = Path("/etc/pam.d/isthmus-bench"), Path("/run/isthmus-bench.pid")
WITHOUT, FIRST, FURTHER = "without", "first", "further"
HANGS_S = 60


def wait(is_so: Callable[[], object]) -> None:
    """Wait until something is so."""
    deadline = time.monotonic() + HANGS_S
    while not is_so():
        if time.monotonic() > deadline:
            sys.exit("a login pod did not come or go in time")
        time.sleep(0.05)


class Rounds:
    """What is asked for, and the ways to do it."""

    def __init__(self, asked: dict[str, Any]) -> None:
        self.asked = asked
        self.place = Path(f"/run/isthmus/login/{asked['uid']}")

    def ssh(self, port: int, command: str = "true") -> list[str]:
        """Return the words that run a command in a session."""
        options = ["-q", "-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=accept-new", "-p", str(port)]
        return ["runuser", "-u", self.asked["user"], "--", "ssh", *options, self.asked["host"], command]

    def clear(self) -> None:
        """End the pod, with its address and network."""
        subprocess.run(["systemctl", "stop", f"isthmus-login@{self.asked['uid']}"], check=False)
        wait(lambda: not self.place.exists())
        time.sleep(0.5)

    def time(self, port: int) -> float:
        """Return the seconds of one session."""
        begin = time.perf_counter()
        subprocess.run(self.ssh(port), check=True, stdin=subprocess.DEVNULL)
        return time.perf_counter() - begin

    def once(self, kind: str) -> float:
        """Return the seconds of a session of a kind; what it needs comes before."""
        if kind == WITHOUT:
            return self.time(PORT)
        self.clear()
        if kind == FIRST:
            return self.time(22)
        with subprocess.Popen(self.ssh(22, "sleep 60"), stdin=subprocess.DEVNULL) as other:
            wait(lambda: list(self.place.glob("sessions/*")))
            time.sleep(0.5)
            seconds = self.time(22)
            other.kill()
        return seconds


def main() -> None:
    """Start the other sshd, run the rounds, stop it."""
    rounds = Rounds(json.load(sys.stdin))
    pam = Path("/etc/pam.d/sshd").read_text()
    SERVICE.write_text(re.sub(r"(?m)^# BEGIN isthmus: login pods\n(.*\n)*?# END isthmus: login pods\n", "", pam))
    subprocess.run(
        ["/usr/sbin/sshd", "-p", str(PORT), "-o", f"PAMServiceName={SERVICE.name}", "-o", f"PidFile={PID}"], check=True
    )
    try:
        for kind in (WITHOUT, FIRST, FURTHER):
            rounds.once(kind)
        for _ in range(rounds.asked["rounds"]):
            kinds = [WITHOUT, FIRST, FURTHER]
            random.shuffle(kinds)
            for kind in kinds:
                print(json.dumps({"name": kind, "seconds": rounds.once(kind)}), flush=True)
    finally:
        subprocess.run(["kill", PID.read_text().strip()], check=False)
        SERVICE.unlink()


if __name__ == "__main__":
    main()
