"""What is looked at on a node: one list for three programs.

`isthmus node check` shows all of it, `isthmus-exporter` makes figures of it, and slurmd runs `isthmus-node-health`.
Of the list that one uses those that take a node out of service: faults of this node alone, under which jobs fail. The
others are for an admin: what will be a fault, and what Slurm sees by itself. A look that cannot be made is a problem
too. Words that change at each look would change the reason of a drain each time.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from threading import Thread

from isthmus.clients.process import ProcessError, run
from isthmus.network.api.client import ROOT_SOCKET, ask
from isthmus.network.api.messages import Status
from isthmus.network.api.protocol import RequestError
from isthmus.network.drivers import registry as drivers
from isthmus.network.node.plugin import Plugin

HOME = Path("/home")
FUSE = Path("/dev/fuse")
GPUS = Path("/dev/nvidiactl")
MOUNTS_WANTED = Path("/etc/fstab")
MOUNTS = Path("/proc/self/mounts")
NETWORK = Path("/etc/isthmus/network.json")
CERTIFICATES = Path("/etc/isthmus/tls")
CONTAINER = Path("/run/systemd/container")
DISKS = (Path("/tmp"), Path("/var"))  # noqa: S108
UNITS = (
    *("munge", "slurmd", "sackd", "slurmctld", "slurmdbd", "mariadb"),
    *("isthmus-networkd", "isthmus-dns", "isthmus-etcd", *drivers.units(), "isthmus-jobsd", "isthmus-joind"),
    *("docker-registry", "isthmus-registry", "isthmus-tokend"),
)
HOME_S = 10.0
# A daemon that restarts is back within this.
NETWORK_S = 20.0
COMMAND_S = 20.0
FREE_LEAST = 0.01
# Renewal is due 30 days before.
DAYS_LEAST = 14
ENVIRONMENT = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}


@dataclass(frozen=True)
class Check:
    """One look.

    Attributes:
        name: of what is looked at.
        look: yields a problem each, nothing where all is well.
        remedy: what an admin does about it.
        drains: such a problem takes the node out of service.
        warns: such a problem breaks nothing yet.
        slow: it costs more than moments, and is not made every few seconds.
    """

    name: str
    look: Callable[[], Iterator[str]]
    remedy: str
    drains: bool = False
    warns: bool = False
    slow: bool = False


def missing_mounts(wanted: str, mounted: str) -> list[str]:
    """Folders of /etc/fstab on which nothing is mounted; no file is touched, as that could wait for ever."""
    there = {words[1] for line in mounted.splitlines() if len(words := line.split()) > 1}
    entries = [words for line in wanted.splitlines() if len(words := line.split()) > 3 and not words[0].startswith("#")]
    folders = [words[1] for words in entries if not {"noauto", "nofail"} & {*words[3].split(",")}]
    return [folder for folder in folders if folder.startswith("/") and folder not in there]


def answers(look: Callable[[], object], timeout_s: float) -> bool:
    """Return whether a look ends without an error in time; one that hangs is left behind."""
    done = []

    def to_the_end() -> None:
        try:
            look()
        except OSError:
            return
        done.append(True)

    thread = Thread(target=to_the_end, daemon=True)
    thread.start()
    thread.join(timeout_s)
    return bool(done)


def full(found: os.statvfs_result) -> bool:
    """Return whether a file system lacks room or names; 0 names in all means that it does not count them."""
    return found.f_bavail < found.f_blocks * FREE_LEAST or found.f_favail < found.f_files * FREE_LEAST


def network_answers(until: float) -> bool:
    """Return whether this node's daemon of the pod networks answers, or does so within a moment."""
    while True:
        try:
            ask(Status(), ROOT_SOCKET, timeout_s=max(0.1, until - time.monotonic()))
        except RequestError:
            return True
        except (OSError, ValueError):
            if time.monotonic() + 1 > until:
                return False
            time.sleep(1)
        else:
            return True


def fuse_is_open() -> bool:
    """Return whether /dev/fuse is a device that every user may open."""
    try:
        mode = FUSE.stat().st_mode
    except OSError:
        return False
    return stat.S_ISCHR(mode) and mode & 0o666 == 0o666


def enabled_units(shown: str) -> dict[str, bool]:
    """Whether units that are enabled run, of what `systemctl show` prints."""
    blocks = (dict(line.partition("=")[::2] for line in block.splitlines()) for block in shown.split("\n\n"))
    return {
        str(block["Id"]).removesuffix(".service"): block["ActiveState"] in ("active", "reloading")
        for block in blocks
        if block.get("UnitFileState") == "enabled"
    }


def daemons() -> dict[str, bool]:
    """Return the cluster's daemons that are enabled here, and whether each runs.

    Raises:
        ProcessError: systemd did not answer.
    """
    properties = "--property=Id,UnitFileState,ActiveState"
    return enabled_units(
        run(["systemctl", "show", properties, *UNITS], timeout_s=COMMAND_S, environment=ENVIRONMENT).stdout
    )


def certificate_ends() -> dict[Path, datetime]:
    """Return when each certificate of this host ends.

    Raises:
        OSError: one cannot be read.
        ValueError: one is none.
    """
    from cryptography import x509  # 50 ms that slurmd's program does without

    files = sorted(CERTIFICATES.glob("*.crt"))
    return {file: x509.load_pem_x509_certificate(file.read_bytes()).not_valid_after_utc for file in files}


def _mounts() -> Iterator[str]:
    wanted = MOUNTS_WANTED.read_text() if MOUNTS_WANTED.exists() else ""
    yield from (f"{folder} is not mounted" for folder in missing_mounts(wanted, MOUNTS.read_text()))


def _home() -> Iterator[str]:
    if not answers(lambda: os.listdir(HOME), HOME_S):
        yield f"{HOME} does not answer"


def _fuse() -> Iterator[str]:
    if not fuse_is_open():
        yield f"{FUSE} is missing or closed to users"


def _disks() -> Iterator[str]:
    yield from (f"{disk} is full" for disk in DISKS if full(os.statvfs(disk)))


def _network() -> Iterator[str]:
    if NETWORK.exists() and not network_answers(time.monotonic() + NETWORK_S):
        yield "isthmus-networkd does not answer"


def _encryption() -> Iterator[str]:
    problem = ask(Status(), ROOT_SOCKET).get("errors", {}).get("encryption") if NETWORK.exists() else ""
    if problem:
        yield str(problem)


def _plugin() -> Iterator[str]:
    if NETWORK.exists() and ask(Status(), ROOT_SOCKET).get("plugin") == Plugin.MISSING:
        yield "slurmd has not loaded the plugin for pod networks"


def _units() -> Iterator[str]:
    yield from (f"{unit} does not run" for unit, is_up in daemons().items() if not is_up)


def _clock() -> Iterator[str]:
    if CONTAINER.exists():  # it has its machine's
        return
    command = ["timedatectl", "show", "--property=NTPSynchronized", "--value"]
    if run(command, timeout_s=COMMAND_S, environment=ENVIRONMENT).stdout.strip() == "no":
        yield "the clock is not synchronized"


def _certificates() -> Iterator[str]:
    for file, end in certificate_ends().items():
        left = end - datetime.now(UTC)
        if left.days < DAYS_LEAST:
            yield f"{file} ends in {left.days} days" if left.days >= 0 else f"{file} has ended"


def _cleaning() -> Iterator[str]:
    # Of a unit that is not here systemd says the same as of one that did well.
    command = ["systemctl", "show", "--property=Result", "--value", "isthmus-registry-gc.service"]
    result = run(command, timeout_s=COMMAND_S, environment=ENVIRONMENT).stdout.strip()
    if result != "success":
        yield f"the registry was not cleaned: {result}"


def _gpus() -> Iterator[str]:
    if GPUS.exists():
        run(["nvidia-smi", "--list-gpus"], timeout_s=COMMAND_S, environment=ENVIRONMENT)
    yield from ()


CHECKS = (
    Check("mounts", _mounts, "run `mount --all`", drains=True),
    Check("home", _home, "look at the file server, and at `dmesg` here", drains=True),
    Check("fuse", _fuse, "run playbooks/base.yml", drains=True),
    Check("disks", _disks, "make room", drains=True),
    Check("network", _network, "see `journalctl -u isthmus-networkd`", drains=True),
    Check("encryption", _encryption, "see `isthmus network status`"),
    Check("plugin", _plugin, "restart slurmd, and look for plugstack in its log"),
    Check("daemons", _units, "see `systemctl status` and `journalctl -u` of it"),
    Check("gpus", _gpus, "see `dmesg`, and nvidia-smi", slow=True),
    Check("cleaning", _cleaning, "see `journalctl -u isthmus-registry-gc`, then start it", warns=True, slow=True),
    Check("certificates", _certificates, "run playbooks/renew_certificates.yml", warns=True),
    Check("clock", _clock, "see `systemctl status chrony`", warns=True, slow=True),
)


def problems_of(check: Check) -> list[str]:
    """Make a look; one that cannot be made is a problem."""
    try:
        return list(check.look())
    except (OSError, ValueError, ProcessError, RequestError) as error:
        return [f"{check.name}: {error}"]
