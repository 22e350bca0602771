"""A real OpenStack in one container: keystone, glance, placement, nova, neutron and cinder of Debian's packages.

nova's driver is the fake one: servers, ports and volumes are made, listed and deleted as in any cloud, by the real
APIs, and no guest boots. There are several hypervisors: nova gives each its servers one by one. Two images are made
once and kept by podman: one of the packages, and one more where the files of tests/support/files/openstack_box were
run. A container of that answers after half a minute. Its address is part of the image, for the catalog names it.

    python -m tests.support.servers.openstack up | down | forget
"""

from __future__ import annotations

import fcntl
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from isthmus.filters.images.image import local_apt_options, local_apt_sources, local_bootstrap_command
from isthmus.filters.local.podman import local_engine

FILES = Path(__file__).parents[1] / "files/openstack_box"
NAME = "isthmus-openstack"
SUBNET, ADDRESS, REGION = "10.230.78.0/24", "10.230.78.10", "RegionOne"
BOOT_S, UP = 900, ("running", "degraded")
# Those who use a box at once hold this one together; its text says whether the last of them removes the box.
USERS, PASSING = Path(f"/run/lock/{NAME}-users"), "passing"
REPOSITORY = "localhost/isthmus-openstack"
PACKAGES = [
    *("ca-certificates", "dbus", "iproute2", "procps", "python3-openstacksdk", "systemd", "systemd-sysv"),
    *("mariadb-server", "memcached", "rabbitmq-server"),
    *("keystone", "glance-api", "placement-api", "neutron-api"),
    *("nova-api", "nova-conductor", "nova-scheduler"),
    *("cinder-api", "cinder-scheduler", "cinder-volume"),
    # That starts and deletes servers as jobs need them.
    *("munge", "slurmctld", "slurmd", "slurm-client", "slurm-wlm-basic-plugins"),
]
# Documents and languages are a tenth of what is unpacked.
LEFT_OUT = ("/usr/share/doc/*", "/usr/share/man/*", "/usr/share/locale/*")
# Without their settings services end and start again for ever, and the machine has time for nothing else; the rest
# would only wake up now and then.
QUIET = [
    *("keystone", "glance-api", "neutron-api", "nova-api", "nova-api-metadata", "nova-conductor", "nova-scheduler"),
    *("munge", "slurmctld", "slurmd"),
    *("cinder-api", "cinder-scheduler", "cinder-volume", "mariadb", "memcached", "rabbitmq-server", "open-iscsi"),
    *("rtslib-fb-targetctl", "blk-availability", "lvm2-monitor", "dm-event.socket", "iscsid.socket"),
    *("apt-daily.timer", "apt-daily-upgrade.timer", "fstrim.timer", "e2scrub_all.timer"),
]
CUSTOMIZE = f"""\
#!/bin/sh
set -eu
: >"$1/etc/machine-id"
rm -rf "$1/var/lib/apt/lists"
for unit in {" ".join(QUIET)}; do
    systemctl --quiet --root "$1" disable "$unit"
done
"""


@dataclass(frozen=True)
class Box:
    """A running one.

    Attributes:
        name: of the container.
        address: its IPv4 address, from this machine.
        clouds: a clouds.yaml with `box`, an ordinary user's project, and `box-admin`.
    """

    name: str
    address: str
    clouds: Path

    def run(self, *argv: str, given: str | None = None) -> str:
        """Run something in there, as root."""
        return _output("podman", "exec", "--interactive", self.name, *argv, given=given)


def bare() -> str:
    """The name of the image with the packages alone."""
    return f"{REPOSITORY}-bare:{sha256(' '.join([*PACKAGES, *LEFT_OUT, CUSTOMIZE]).encode()).hexdigest()[:16]}"


def image() -> str:
    """The name of the image with an OpenStack: another recipe, another image."""
    digest = sha256(f"{bare()} {ADDRESS} {REGION}".encode())
    for path in sorted(path for path in FILES.rglob("*") if path.is_file() and path.suffix != ".pyc"):
        digest.update(f"\0{path.relative_to(FILES)}\0".encode() + path.read_bytes())
    return f"{REPOSITORY}:{digest.hexdigest()[:16]}"


def is_built() -> bool:
    """Return whether the image is there."""
    return subprocess.run(["podman", "image", "exists", image()], check=False).returncode == 0


def is_running() -> bool:
    """Return whether a box of this recipe runs."""
    return _state() == "running"


@contextmanager
def used(folder: Path) -> Iterator[Box]:
    """Have a box; the last of its users removes one that the first of them started."""
    with USERS.open("a+") as users:
        fcntl.flock(users, fcntl.LOCK_SH)
        try:
            yield start(folder, text=PASSING)
        finally:
            with suppress(BlockingIOError):
                fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if USERS.read_text() == PASSING:
                    stop()


def start(folder: Path, *, text: str = "") -> Box:
    """Start a box where none runs, of an image that is made where none is; wait until all answers."""
    with Path(f"/run/lock/{NAME}").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not is_built():
            _build()
        if not is_running():
            _run(image())
            USERS.write_text(text)
        box = Box(NAME, ADDRESS, folder / "clouds.yaml")
        # By its input: a folder that git has made again is not the one that a running container has mounted.
        box.run("python3", "-", "ready", given=(FILES / "catalog.py").read_text())
        box.clouds.touch(0o600)
        box.clouds.write_text(box.run("cat", "/etc/openstack/clouds.yaml"))
        return box


def stop() -> None:
    """Remove the box and its network; the image stays."""
    _output("podman", "rm", "--force", "--ignore", "--time", "0", NAME)
    if subprocess.run(["podman", "network", "exists", NAME], check=False).returncode == 0:
        _output("podman", "network", "rm", "--force", NAME)


def _state() -> str:
    asked = ["podman", "inspect", "--format", "{{.State.Status}} {{.Config.Image}}", NAME]
    reported = subprocess.run(asked, check=False, capture_output=True, text=True).stdout.split()
    return reported[0] if reported[1:] == [image()] else ""


def _run(made_of: str) -> None:
    stop()
    _output("podman", "network", "create", "--subnet", SUBNET, NAME)
    status, limits = (Path(f"/proc/self/{kind}").read_text() for kind in ("status", "limits"))
    engine = local_engine(json.loads(_output("podman", "info", "--format", "json")), status, limits)
    shape = ["--privileged", "--systemd=always", "--stop-timeout", "60", "--pids-limit", "-1", "--hostname", NAME]
    place = ["--network", f"{NAME}:ip={ADDRESS}", "--volume", f"{FILES}:/box:ro"]
    _output("podman", "run", "--detach", "--name", NAME, *shape, *place, *engine, made_of, "/sbin/init")
    # Until systemd answers; what fails without its settings does not matter yet.
    asked = ["podman", "exec", NAME, "systemctl", "is-system-running", "--wait"]
    end = time.monotonic() + BOOT_S
    while subprocess.run(asked, check=False, capture_output=True, text=True).stdout.strip() not in UP:
        if time.monotonic() > end:
            raise RuntimeError(f"systemd does not answer in {NAME} after {BOOT_S} s; podman logs {NAME}")
        time.sleep(0.5)


def _build() -> None:
    begun = time.monotonic()
    if subprocess.run(["podman", "image", "exists", bare()], check=False).returncode:
        _bootstrap(bare())
    print(f"packages are there after {time.monotonic() - begun:.0f} s", flush=True)
    _run(bare())
    _output("podman", "exec", NAME, "/box/setup.sh", ADDRESS, REGION)
    print(f"OpenStack is set up after {time.monotonic() - begun:.0f} s", flush=True)
    # Databases that were stopped, not cut off.
    _output("podman", "stop", NAME)
    _output("podman", "commit", "--quiet", NAME, image())
    stop()
    print(f"made {image()} in {time.monotonic() - begun:.0f} s", flush=True)


def _bootstrap(name: str) -> None:
    targets = ("apt-get", "indextargets", "--format", "$(RELEASE) $(REPO_URI) $(COMPONENT)", "Created-By: Packages")
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        tar = Path(folder, "root.tar")
        recipe = {
            "suite": "trixie",
            "packages": PACKAGES,
            "sources": local_apt_sources(_output(*targets), "trixie"),
            "options": local_apt_options(_output("apt-config", "dump", "--no-empty", "Acquire")),
        }
        customize = Path(f"{tar}.customize")
        customize.write_text(CUSTOMIZE)
        customize.chmod(0o755)
        command = local_bootstrap_command(recipe, str(tar))
        at = command.index("mmdebstrap") + 1
        lean = [f"--dpkgopt=path-exclude={pattern}" for pattern in LEFT_OUT] + ["--dpkgopt=force-unsafe-io"]
        _output(*command[:at], *lean, *command[at:])
        _output("podman", "import", "--quiet", str(tar), name)


def _output(*argv: str, given: str | None = None) -> str:
    done = subprocess.run(argv, capture_output=True, text=True, check=False, input=given)
    # Its own words: a CalledProcessError shows the command alone.
    if done.returncode:
        raise RuntimeError(f"{' '.join(argv)[:500]} ended with {done.returncode}: {done.stderr[-3000:]}")
    return done.stdout


def main(verb: str) -> None:
    """Do what the command line says."""
    if verb == "up":
        folder = Path("/run/isthmus-openstack")
        folder.mkdir(mode=0o700, exist_ok=True)
        print(f"OS_CLIENT_CONFIG_FILE={start(folder).clouds}")
    else:
        stop()
    if verb == "forget":
        _output("podman", "rmi", "--force", "--ignore", image(), bare())


if __name__ == "__main__":
    main(*sys.argv[1:])
