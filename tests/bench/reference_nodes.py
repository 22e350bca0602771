"""Nodes of a plain Kubernetes beside a test bed: containers of its image, in its network, with the official programs.

The official kubelet writes kernel parameters of the machine, for which it has no namespace of its own: who makes nodes
puts them back (`kept_parameters`).
"""

from __future__ import annotations

import io
import json
import os
import subprocess
import tarfile
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path

from isthmus.filters.local.podman import local_engine
from tests.support.clusters.cluster import BIN, ROOT

SETUP = Path(__file__).with_name("reference_node.sh")
PROGRAMS = Path(__file__).with_name("reference.yml")
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "isthmus"
PARAMETERS = ("kernel/panic", "kernel/panic_on_oops", "vm/overcommit_memory")
# podman mounts the machine's own systemd hierarchy over the one of a private cgroup namespace.
ENTRY = "umount /sys/fs/cgroup/systemd/release_agent; umount /sys/fs/cgroup/systemd; exec /sbin/init"


def podman(*words: str, stdin: str = "") -> str:
    """Run podman; return what it prints. Its errors are this program's too."""
    pipe = subprocess.PIPE
    return subprocess.run(["podman", *words], input=stdin, stdout=pipe, text=True, check=True).stdout


@contextmanager
def kept_parameters() -> Iterator[None]:
    """Put the machine's kernel parameters back, whatever happens."""
    files = [Path("/proc/sys") / name for name in PARAMETERS]
    before = [file.read_text() for file in files]
    try:
        yield
    finally:
        for file, text in zip(files, before, strict=True):
            file.write_text(text)


def programs(folder: Path) -> dict[str, str]:
    """Obtain the programs; return where each lies."""
    reported = folder / "programs.json"
    command = [BIN / "ansible-playbook", PROGRAMS, "--extra-vars", f"reference_programs_file={reported}"]
    subprocess.run([*map(str, command)], cwd=ROOT, check=True)
    found: dict[str, str] = json.loads(reported.read_text())
    return found


def archive(image: str) -> Path:
    """Return the archive of an image that the site's registry has, which the deployer made."""
    path = CACHE / "images-oci" / f"{image.rpartition('/')[2].replace(':', '-')}.tar"
    if not path.exists():
        raise SystemExit(f"{path} is missing; the playbook of the layer that has this image makes it")
    return path


class Node:
    """One container.

    Args:
        bed: name of the test bed, whose image and network it has.
        name: of the container.
        host: its host name.
    """

    def __init__(self, bed: str, name: str, host: str) -> None:
        self._bed, self.name, self.host = bed, name, host

    @property
    def address(self) -> str:
        """Its address in the test bed's network."""
        networks = json.loads(podman("inspect", self.name))[0]["NetworkSettings"]["Networks"]
        return str(networks[self._bed]["IPAddress"])

    def make(self, files: Mapping[str, str]) -> None:
        """Make it; `files`: path below /reference -> file of this machine."""
        like = json.loads(podman("inspect", f"{self._bed}-login"))[0]["ImageName"]
        status, limits = (Path(f"/proc/self/{kind}").read_text() for kind in ("status", "limits"))
        engine = local_engine(json.loads(podman("info", "--format", "json")), status, limits)
        self.remove()
        # Its own files would be an overlay on an overlay.
        volumes = [f"{self.name}-{part}:/var/lib/{part}" for part in ("containerd", "kubelet")]
        shape = ["--privileged", "--systemd=always", "--cgroupns=private", "--pids-limit=-1", "--shm-size=1g", *engine]
        where = ["--name", self.name, "--hostname", self.host, "--network", self._bed]
        mounts = [word for volume in volumes for word in ("--volume", volume)]
        podman("run", "--detach", *where, *shape, *mounts, like, "sh", "-c", ENTRY)
        self.run("mkdir -p /reference/bin /reference/images /reference/credentials")
        for path, source in files.items():
            podman("cp", source, f"{self.name}:/reference/{path}")

    def run(self, command: str, stdin: str = "") -> str:
        """Run a command there; return what it prints."""
        return podman("exec", "--interactive", self.name, "bash", "-c", command, stdin=stdin)

    def set_up(self, part: str, *words: str) -> None:
        """Make it a part of the Kubernetes: reference_node.sh says which."""
        podman("exec", "--interactive", self.name, "bash", "-s", part, *words, stdin=SETUP.read_text())

    def remove(self) -> None:
        """Remove it with all it had; what is not there is fine."""
        podman("rm", "--force", "--ignore", "--time", "5", "--volumes", self.name)
        podman("volume", "rm", "--force", f"{self.name}-containerd", f"{self.name}-kubelet")


def image_files(images: Mapping[str, Path], folder: Path) -> dict[str, str]:
    """Return what a worker has of images: each archive, and beside it the reference that it is for."""
    found: dict[str, str] = {}
    for place, (reference, file) in enumerate(images.items()):
        (folder / f"{place}.name").write_text(reference)
        found |= {f"images/{place}.tar": str(file), f"images/{place}.name": str(folder / f"{place}.name")}
    return found


def pause_image(path: Path) -> Path:
    """Write an image whose only program does nothing, as each pod needs one; return its path."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["make", "-s", "-C", ROOT / "src/spank", "inside", f"OUT={folder}"], check=True)
        layer, program = io.BytesIO(), Path(folder, "isthmus_hold").read_bytes()
    with tarfile.open(fileobj=layer, mode="w") as files:
        entry = tarfile.TarInfo("pause")
        entry.size, entry.mode = len(program), 0o755
        files.addfile(entry, io.BytesIO(program))
    digest = f"sha256:{sha256(layer.getvalue()).hexdigest()}"
    machine = {"x86_64": "amd64", "aarch64": "arm64"}[os.uname().machine]
    root = {"type": "layers", "diff_ids": [digest]}
    config = json.dumps({"architecture": machine, "os": "linux", "config": {"Entrypoint": ["/pause"]}, "rootfs": root})
    manifest = [{"Config": "config.json", "RepoTags": ["localhost/pause:1"], "Layers": ["layer.tar"]}]
    parts = {
        "config.json": config.encode(),
        "layer.tar": layer.getvalue(),
        "manifest.json": json.dumps(manifest).encode(),
    }
    with tarfile.open(path, "w") as archive:
        for name, content in parts.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return path
