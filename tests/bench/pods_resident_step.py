"""Runs in the job of a control plane: kills the kubelet, and times until all supervisors are with the next one."""

import json
import os
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path

ESTABLISHED = "01"
KUBELET = b"isthmus.kubelet"
LIMIT_S = 120.0


def kubelet() -> int:
    """Return the process of this user's kubelet; 0 while there is none."""
    for folder in Path("/proc").iterdir():
        # Others end while this looks at them.
        with suppress(OSError):
            if folder.name.isdigit() and folder.stat().st_uid == os.getuid():
                words = (folder / "cmdline").read_bytes().split(b"\0")
                if words[1:4] == [b"-I", b"-m", KUBELET]:
                    return int(folder.name)
    return 0


def connections(port: int) -> int:
    """Count who is connected to a port of this network namespace (proc_pid_net(5), tcp)."""
    rows = [line.split() for name in ("tcp", "tcp6") for line in Path(f"/proc/net/{name}").read_text().splitlines()[1:]]
    return sum(row[1].endswith(f":{port:04X}") and row[3] == ESTABLISHED for row in rows)


def memory_mib(process: int, field: str) -> float:
    """Return what a process has, or had at most, in memory (proc_pid_status(5))."""
    status = Path(f"/proc/{process}/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in status if line.startswith(f"{field}:"))


def main() -> None:
    """Print one JSON object."""
    port, count = map(int, sys.argv[1:])
    before = kubelet()
    if not before:
        raise SystemExit("no kubelet runs here")
    reported = {
        "connected": connections(port),
        "peak_mib": memory_mib(before, "VmHWM"),
        "now_mib": memory_mib(before, "VmRSS"),
    }
    began = time.monotonic()
    os.kill(before, signal.SIGKILL)
    while kubelet() in (0, before):
        time.sleep(0.01)
    reported["restarted_s"] = time.monotonic() - began
    while connections(port) < count and time.monotonic() - began < LIMIT_S:
        time.sleep(0.05)
    reported["adopted_s"] = time.monotonic() - began
    reported["adopted"] = connections(port)
    time.sleep(10)
    reported["restarted_peak_mib"] = memory_mib(kubelet(), "VmHWM")
    print(json.dumps(reported))


if __name__ == "__main__":
    main()
