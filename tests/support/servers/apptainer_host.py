"""A node with real Apptainer on the machine that runs the tests, whatever its own distribution is.

A container of podman with Debian 13 and sid's Apptainer, as nodes have it, and an ordinary user. It shares the
machine's network and process ids, so that a test talks to what runs there by the loopback and by signals.
"""

from __future__ import annotations

import fcntl
import json
import shlex
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from isthmus.filters.images.image import local_apt_options, local_apt_sources, local_bootstrap_command, local_image_key
from isthmus.filters.local.podman import local_engine
from tests.support.clusters.cluster import ROOT

USER, UID = "alice", 1000
_PACKAGES = [
    "apptainer",
    "busybox-static",
    "fuse-overlayfs",
    "procps",
    "python3",
    "squashfs-tools",
    "squashfuse",
    "uidmap",
]
_SETUP = """\
mkdir -p "$1/etc/apt/preferences.d"
printf '%s\\n' 'Package: *' 'Pin: release n=sid' 'Pin-Priority: -1' '' \\
  'Package: apptainer' 'Pin: release n=sid' 'Pin-Priority: 990' >"$1/etc/apt/preferences.d/isthmus-apptainer"
"""
_CUSTOMIZE = """\
#!/bin/sh
set -eu
chroot "$1" useradd --create-home alice
chroot "$1" useradd --create-home bob
# Bob has none: what a user without subordinate ids gets.
for file in subuid subgid; do echo alice:100000:65536 >"$1/etc/$file"; done
"""
# A root file system of busybox alone, with the folders that every image has.
_ROOTFS = """\
set -eu
root=$(mktemp -d)
cd "$root"
mkdir -p bin dev proc sys root tmp var/tmp home etc
cp /bin/busybox bin/busybox
for name in $(busybox --list); do [ "$name" = busybox ] || ln -s busybox "bin/$name"; done
echo 'root:x:0:0:root:/root:/bin/sh' >etc/passwd
echo 'root:x:0:' >etc/group
touch etc/hosts etc/resolv.conf
chmod 1777 tmp var/tmp
chmod 755 .
mksquashfs . "$0" -all-root -noappend -quiet -no-progress
"""
# Slurm's srun as far as the supervisor calls it: any other word is refused. The first step of 63 MiB is refused, as
# by a busy Slurm; one of 62 MiB is long in ending, as real ones are. A step of a job that was submitted with
# --export=NIL, as pods' are, has only Slurm's own variables unless it asks for all. Of tasks on two nodes the second
# half take c9 for their node.
_SRUN = """\
#!/bin/sh
case $* in
*--mem=62*) lasts=6.2 ;;
*--mem=63*) [ -e /var/tmp/srun-busy ] || { touch /var/tmp/srun-busy; echo 'srun: error: busy' >&2; exit 1; } ;;
esac
given='env -i' words=$*
for word; do
    case $word in
    --export=ALL) given=env; shift ;;
    --quiet | --overlap | --nodes=1 | --ntasks=1 | --nodelist=c1 | --job-name=* | --mem=6[234] | --mpi=pmix) shift ;;
    --cpu-bind=none | --input=none | --gres=none) shift ;;
    --ntasks=[24]) tasks=${word#*=}; shift ;;
    --nodes=2) nodes=2; shift ;;
    -*) echo "srun: unrecognized option '$word'" >&2; exit 1 ;;
    *) break ;;
    esac
done
echo "step: $*" >&2
# Of a signal every process of the step hears.
case $words in *--mpi=pmix*)
    trap 'trap "" TERM; kill -TERM 0' TERM
    each=$((${tasks:-1} / ${nodes:-1})) task=0 node=$SLURMD_NODENAME worst=0
    while [ $task -lt ${tasks:-1} ]; do
        [ $task -lt $each ] || node=c9
        own="SLURM_PROCID=$task SLURM_STEP_ID=0 SLURM_STEP_TASKS_PER_NODE=$each(x${nodes:-1}) SLURMD_NODENAME=$node"
        $given $own "$@" <&0 & pids="$pids $!"
        task=$((task + 1))
    done
    for pid in $pids; do
        while wait $pid; code=$?; kill -0 $pid 2>/dev/null; do :; done
        [ $code = 0 ] || worst=$code
    done
    exit $worst ;;
esac
[ -n "$lasts" ] || exec $given SLURM_PROCID=0 "$@"
$given SLURM_PROCID=0 "$@"
code=$?
sleep "$lasts"
exit $code
"""


@dataclass(frozen=True)
class ApptainerHost:
    """A running one.

    Attributes:
        name: podman's container.
        shared: a folder that is the same in there; the ordinary user's.
        image: a squashfs image with busybox.
    """

    name: str
    shared: Path
    image: Path

    def command(self, *argv: str | Path, user: str = USER, **environment: str) -> list[str]:
        """Return the command that runs something in there."""
        words = [word for name, value in environment.items() for word in ("--env", f"{name}={value}")]
        return ["podman", "exec", "--user", user, *words, self.name, *map(str, argv)]

    def run(self, *argv: str | Path, user: str = "root", check: bool = True) -> str:
        """Run something in there; return its output."""
        done = subprocess.run(self.command(*argv, user=user), capture_output=True, text=True, check=check)
        return done.stdout


def start(folder: Path, name: str, packages: Path = ROOT / "src") -> ApptainerHost:
    """Start one that has these Python packages; the image is made once (about a minute) and kept by podman."""
    image = _image(folder)
    shared = folder / "shared"
    shared.mkdir()
    status, limits = (Path(f"/proc/self/{kind}").read_text() for kind in ("status", "limits"))
    engine = local_engine(json.loads(_output("podman", "info", "--format", "json")), status, limits)
    programs = folder / "programs"
    _output("make", "-s", "-C", str(ROOT / "src/spank"), "inside", f"OUT={programs}")
    mounted = (f"{packages}:/isthmus:ro", f"{programs}:/usr/lib/isthmus:ro", f"{shared}:{shared}")
    volumes = [word for path in mounted for word in ("--volume", path)]
    shape = ["--privileged", "--network", "host", "--pid", "host", "--tmpfs", "/scratch", "--shm-size", "256m"]
    _output("podman", "run", "--detach", "--name", name, *shape, *volumes, *engine, image, "sleep", "infinity")
    host = ApptainerHost(name, shared, shared / "busybox.squashfs")
    host.run("chmod", "666", "/dev/fuse")
    host.run("chmod", "1777", "/scratch")
    host.run("sh", "-c", _ROOTFS, host.image)
    host.run("sh", "-c", 'echo "$0" >/usr/local/bin/srun; chmod 755 /usr/local/bin/srun', _SRUN)
    host.run("sh", "-c", "echo /isthmus >/usr/lib/python3/dist-packages/isthmus.pth")
    host.run("chown", f"{USER}:", shared)
    return host


def stop(host: ApptainerHost) -> None:
    """Remove it."""
    subprocess.run(["podman", "rm", "--force", "--time", "0", host.name], check=True, capture_output=True)


def _image(folder: Path) -> str:
    targets = _output(
        "apt-get", "indextargets", "--format", "$(RELEASE) $(REPO_URI) $(COMPONENT)", "Created-By: Packages"
    )
    sources = local_apt_sources(targets, "trixie")
    mirror = sources[0].split()[1]
    recipe = {
        "suite": "trixie",
        "packages": _PACKAGES,
        # A mirror's copy of sid may be older than a week.
        "sources": [sources[0], f"deb [check-valid-until=no] {mirror} sid main"],
        "options": local_apt_options(_output("apt-config", "dump", "--no-empty", "Acquire")),
        "setup": _SETUP,
        "customize": _CUSTOMIZE,
    }
    name = f"localhost/isthmus-apptainer:{local_image_key(recipe)}"
    # Pytest's workers begin at once; one of them makes it.
    with Path("/run/lock/isthmus-apptainer").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        _make(name, recipe, folder)
    return name


def _make(name: str, recipe: dict[str, Any], folder: Path) -> None:
    if subprocess.run(["podman", "image", "exists", name], check=False).returncode:
        tar = folder / "root.tar"
        customize = Path(f"{tar}.customize")
        customize.write_text(_CUSTOMIZE)
        customize.chmod(0o755)
        begun = time.monotonic()
        _output(*local_bootstrap_command(recipe, str(tar)))
        _output("podman", "import", "--quiet", str(tar), name)
        tar.unlink()
        print(f"made {name} in {time.monotonic() - begun:.0f} s")


def _output(*argv: str) -> str:
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    # Its own words: a CalledProcessError shows the command alone.
    assert done.returncode == 0, f"{shlex.join(argv)[:500]} ended with {done.returncode}: {done.stderr[-2000:]}"
    return done.stdout
