"""A control plane of real programs on the loopback, without Slurm and without containers."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from ipaddress import IPv4Address
from pathlib import Path
from types import MappingProxyType

from isthmus.clients.kube.apiserver import Access, ApiServer
from isthmus.controlplane.commands.user_options import UserOptions
from isthmus.controlplane.data import location, ownership
from isthmus.controlplane.handover import Handover, Slurm
from isthmus.controlplane.launcher import from_folder
from isthmus.controlplane.layout import Home, Layout
from isthmus.controlplane.main import Signals
from isthmus.controlplane.programs import GROUPS, PORT_NAMES, Ports, Site
from isthmus.controlplane.run import Run, run
from isthmus.controlplane.settings import DataLocation, Settings
from isthmus.controlplane.versions import course
from isthmus.controlplane.versions.course import Course, Request
from isthmus.controlplane.versions.plan import UNRECORDED, Image
from isthmus.controlplane.versions.trial import Limits
from isthmus.model import skew
from isthmus.model.network import Driver
from tests.support.servers.etcd import free_port, program
from tests.support.wait import wait

NAMES = ("etcd", "kube-apiserver", "kube-controller-manager", "coredns")
# Beside those that are kept running.
TOOLS = ("etcdutl",)
LOOPBACK = IPv4Address("127.0.0.1")
# The present API server under another release's name does not have what that one has.
DISGUISED = """#!/bin/sh
for word; do
    shift
    case $word in --runtime-config=*) word=--runtime-config={} ;; esac
    set -- "$@" "$word"
done
exec {} "$@"
"""
READY_S = 180


def folder_of_programs(folder: Path, others: Mapping[str, str] = MappingProxyType({})) -> Path:
    """Return a folder with the programs under their names; others of the table stand for some of them."""
    folder.mkdir()
    for name in NAMES + TOOLS:
        (folder / name).symlink_to(program(others.get(name, name)))
    return folder


def image(folder: Path) -> Image:
    """Return the image that stands for a folder of programs, named by its versions."""
    kubernetes, _, etcd = folder.name.partition("-")
    return Image(folder, kubernetes, etcd) if etcd else Image(folder, UNRECORDED.kubernetes, UNRECORDED.etcd)


def serve(
    home: str, programs: str, job: str, headless: str, ports: str, node: str, snapshot_s: str, wanted: str, deaths: str
) -> None:
    """Run one control plane until SIGTERM; what the process of `ControlPlane` does."""
    os.umask(0o077)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    settings = _settings(home, node, int(snapshot_s), headless=headless == "headless")
    context, images = Home(Path(home)), [image(Path(folder)) for folder in programs.split(":")]
    layout = context.cluster
    disk = location.disk(settings, UserOptions(), layout)
    locks = ownership.take(layout, job, lambda _: False, on_disk=disk and disk.folder, wait_s=5).descriptors
    places = location.places(layout, disk)
    course.recover(layout, places)
    launch = from_folder(course.writer(layout, images).file)
    restored = location.restore_newest(layout, settings.data, disk, launch, lambda path: path)
    own = Site(settings, layout, LOOPBACK, Ports(**json.loads(ports)), data=restored.folder)
    signals = Signals(Handover(Slurm(list, str), job, float))

    async def start(chosen, trial):
        site = replace(own, kubernetes=chosen.kubernetes)
        saver = location.saver(job, layout, restored, site)
        parts = Run(job, "alice", context, site, from_folder(chosen.file), locks, (), saver, trial)
        await run(parts, signals.heed)
        return not signals.is_over

    way = Course(layout, f"{job}.0", images, Request(wanted), restored, places, start, Limits(int(deaths)))
    asyncio.run(way.go())


def _settings(home: str, node: str, snapshot_s: int, *, headless: bool) -> Settings:
    return Settings(
        Path("/none"),
        driver=Driver.NONE,
        headless=headless,
        kubelet=(sys.executable, "-m", "isthmus.no_such_kubelet"),
        data=DataLocation.NODE if node else DataLocation.HOME,
        data_dir=Path(node or home),
        snapshot_s=snapshot_s,
    )


@dataclass
class ControlPlane:
    """One user's, in a process of its own.

    Attributes:
        node: a folder, the disk of the node that it starts on; None for data on the home.
        snapshot_s: from one snapshot to the next.
        others: folders of further programs, named KUBERNETES-ETCD.
        wanted: the version that the user asks for.
        deaths: of a program, after which a version has failed.
    """

    home: Path
    programs: Path
    headless: bool = False
    ports: Ports = field(default_factory=lambda: Ports(*(free_port() for _ in PORT_NAMES)))
    process: subprocess.Popen[bytes] | None = None
    job: str = ""
    node: Path | None = None
    snapshot_s: int = 1
    others: tuple[Path, ...] = ()
    wanted: str = ""
    deaths: int = 3

    @property
    def layout(self) -> Layout:
        """Its files."""
        return Home(self.home).cluster

    @property
    def api(self) -> ApiServer:
        """Its API server, as the admin."""
        layout = self.layout
        access = Access(
            f"https://127.0.0.1:{self.ports.api}",
            layout.certificate("ca"),
            layout.certificate("admin"),
            layout.key("admin"),
        )
        return ApiServer(access)

    def add(self, name: str, **scripts: str) -> None:
        """Give it the same programs under another name KUBERNETES-ETCD, some of them replaced by scripts."""
        folder = folder_of_programs(self.home.parent / name)
        own = f"scheduling.k8s.io/{GROUPS[skew.release(UNRECORDED.kubernetes)]}=true"
        disguised = DISGUISED.format(own, (folder / "kube-apiserver").readlink())
        for each, text in ({"kube_apiserver": disguised} | scripts).items():
            path = folder / each.replace("_", "-")
            path.unlink()
            path.write_text(text)
            path.chmod(0o755)
        self.others += (folder,)

    def start(self, job: str = "1") -> None:
        """Start it; it becomes ready later."""
        self.job = job
        shape = "headless" if self.headless else "addresses"
        ports = json.dumps({name: getattr(self.ports, name) for name in PORT_NAMES})
        programs = ":".join(map(str, (self.programs, *self.others)))
        place = [str(self.node or ""), str(self.snapshot_s)]
        words = [str(self.home), programs, job, shape, ports, *place, self.wanted, str(self.deaths)]
        code = "import sys; from tests.support.servers.control_planes import serve; serve(*sys.argv[1:])"
        log = (self.home / "run.log").open("ab")
        named = os.environ | {"SLURMD_NODENAME": self.node.name if self.node else "c1"}
        self.process = subprocess.Popen([sys.executable, "-c", code, *words], stdout=log, stderr=log, env=named)

    def ready_job(self) -> str:
        """Return the job that said it is ready last; one that was killed cannot take that back."""
        return json.loads(self.layout.state.read_text())["job"] if self.layout.state.exists() else ""

    def wait_until_ready(self) -> float:
        """Wait until it says so; return how many seconds it took."""
        began = time.monotonic()
        wait(self.ready_job, self.job.__eq__, lambda _: self.process.poll() is not None, timeout_s=READY_S)
        return time.monotonic() - began

    def stop(self) -> int:
        """End it in order; return its exit status."""
        assert self.process is not None
        self.process.terminate()
        return self.process.wait(120)

    def kill(self) -> None:
        """End it without any order, and its programs with it."""
        assert self.process is not None
        self.process.kill()
        self.process.wait()

    def reported(self) -> dict[str, object]:
        """Return its report about data on a node's disk."""
        return json.loads(self.layout.data.read_text())

    def conditions(self) -> dict[str, dict[str, object]]:
        """Return its report about its programs."""
        return json.loads(self.layout.programs.read_text())["programs"]

    def kubectl(self, *words: str, text: str = "") -> str:
        """Run kubectl as the user; it must succeed."""
        command = [program("kubectl"), "--kubeconfig", str(Home(self.home).kubeconfig), *words]
        done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()


@contextmanager
def running(folder: Path, **changes):
    """Keep a control plane running meanwhile."""
    made = ControlPlane(folder / "home", folder_of_programs(folder / "programs"), **changes)
    made.home.mkdir()
    made.start()
    try:
        made.wait_until_ready()
        yield made
    finally:
        if made.process.poll() is None:
            made.stop()
