"""`isthmus doctor`: what may keep a user's cluster from working, each with what to do about it.

An examination looks, and changes nothing that stays. One that cannot be made is itself a finding.
"""

from __future__ import annotations

import fcntl
import os
import pwd
import shutil
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from tempfile import TemporaryDirectory

from isthmus.clients import process, slurm_jobs
from isthmus.clients.apiserver import ApiError
from isthmus.clients.process import ProcessError
from isthmus.controlplane import job, pki, wishes
from isthmus.controlplane.errors import ControlPlaneError
from isthmus.controlplane.network import NetworkError
from isthmus.controlplane.place import Place, api, control_planes, jobs, read_json

# etcd's own advice (Hardware recommendations): 99 % of syncs below 10 ms; its elections here wait 5 s.
SYNC_GOOD_S = 0.010
SYNC_BAD_S = 0.500
_SYNCS = 50
ROOM_BYTES = 2 << 30
_SUBIDS = (Path("/etc/subuid"), Path("/etc/subgid"))
_RESTARTS = 3


class Level(StrEnum):
    """How bad a finding is."""

    OK = "ok"
    WARNING = "warning"
    FAILURE = "failure"


@dataclass(frozen=True, slots=True)
class Finding:
    """One examination's result; `remedy` is empty where all is well."""

    level: Level
    what: str
    remedy: str = ""


def examine(place: Place) -> Iterator[Finding]:
    """Yield findings, each as soon as it is made."""
    steps: tuple[Callable[[Place], Iterator[Finding]], ...] = (
        _image,
        _folder,
        _room,
        _syncs,
        _locks,
        _subids,
        _slurm,
        _network,
        _certificates,
        _cluster,
    )
    for step in steps:
        try:
            yield from step(place)
        except (OSError, ControlPlaneError) as error:
            yield Finding(Level.FAILURE, f"{step.__name__.strip('_')}: {error}", "see the words before")


def _image(place: Place) -> Iterator[Finding]:
    if not place.settings.image.is_file():
        yield Finding(Level.FAILURE, f"{place.settings.image} is missing", "an admin runs playbooks/kubernetes.yml")
        return
    try:
        process.run(["apptainer", "--quiet", "exec", "--containall", "--no-home", *_version(place)], timeout_s=60)
        yield Finding(Level.OK, f"the image {place.settings.image} starts")
    except ProcessError as error:
        yield Finding(Level.FAILURE, f"the image does not start: {error}", "an admin looks at layer apptainer here")


def _version(place: Place) -> list[str]:
    return [str(place.settings.image), "/usr/local/bin/etcd", "--version"]


def _folder(place: Place) -> Iterator[Finding]:
    folder = place.home.folder
    folder.mkdir(mode=0o700, exist_ok=True)
    mode = folder.stat().st_mode & 0o777
    if mode & 0o077:
        yield Finding(Level.FAILURE, f"{folder} is open to others ({mode:o})", f"chmod 700 {folder}")
    else:
        yield Finding(Level.OK, f"{folder} is yours alone")


def _room(place: Place) -> Iterator[Finding]:
    free = shutil.disk_usage(place.home.folder).free
    words = f"{free >> 20} MiB are free in {place.home.folder}"
    if free < ROOM_BYTES:
        yield Finding(Level.WARNING, words, "remove old files of ~/.isthmus/images; etcd stops writing on a full home")
    else:
        yield Finding(Level.OK, words)


def _syncs(place: Place) -> Iterator[Finding]:
    """Write and sync as etcd does: small appended blocks."""
    with TemporaryDirectory(dir=place.home.folder, prefix=".doctor.") as folder:
        took = sorted(_sync_times(Path(folder) / "wal"))
    slow = took[int(0.98 * len(took))]
    words = f"a sync of the home takes {statistics.median(took) * 1e3:.1f} ms, slow ones {slow * 1e3:.1f} ms"
    if slow > SYNC_BAD_S:
        yield Finding(Level.FAILURE, words, "etcd would lose its own lead; ask for a home on a faster disk")
    elif slow > SYNC_GOOD_S:
        yield Finding(Level.WARNING, words, "the cluster works, and each change waits for it; a faster home helps")
    else:
        yield Finding(Level.OK, words)


def _sync_times(path: Path) -> Iterator[float]:
    with path.open("wb", buffering=0) as file:
        for _ in range(_SYNCS):
            began_s = time.perf_counter()
            file.write(os.urandom(4096))
            os.fdatasync(file.fileno())
            yield time.perf_counter() - began_s


def _locks(place: Place) -> Iterator[Finding]:
    with (
        TemporaryDirectory(dir=place.home.folder, prefix=".doctor.") as folder,
        (Path(folder) / "lock").open("w") as first,
        (Path(folder) / "lock").open("w") as second,
    ):
        try:
            fcntl.flock(first, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            yield Finding(Level.FAILURE, f"the home has no locks: {error}", "an admin mounts it with locks (flock)")
            return
        try:
            fcntl.flock(second, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            yield Finding(Level.OK, "the home has locks")
            return
    yield Finding(Level.FAILURE, "the home gives one lock to two at once", "an admin mounts it with locks (flock)")


def _subids(_: Place) -> Iterator[Finding]:
    user = pwd.getpwuid(os.getuid()).pw_name
    for file in _SUBIDS:
        lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
        names = {line.split(":")[0] for line in lines}
        if names & {user, str(os.getuid())}:
            yield Finding(Level.OK, f"{file} has ids for {user}")
        else:
            remedy = "an admin names the user in apptainer_subids; until then no container has other users inside"
            yield Finding(Level.WARNING, f"{file} has no ids for {user}", remedy)


def _slurm(place: Place) -> Iterator[Finding]:
    wanted = job.submission(place.settings, wishes.read(place.home.cluster), place.home.cluster, place.python)
    try:
        slurm_jobs.try_submit(wanted.options, wanted.script)
        yield Finding(Level.OK, "Slurm takes the control plane's job")
    except ProcessError as error:
        said = error.stderr.strip().splitlines()[-1:] or [str(error)]
        remedy = "ask for another with `isthmus up --partition, --account, --qos, --time, --memory`"
        yield Finding(Level.FAILURE, f"Slurm refuses the control plane's job: {said[0]}", remedy)


def _network(place: Place) -> Iterator[Finding]:
    if place.network is None:
        words = f"jobs have no private network here (driver {place.settings.driver})"
        yield Finding(Level.WARNING, words, "Services are names alone, and ports are shared with others on the node")
        return
    try:
        place.network.join()
        yield Finding(Level.OK, "this host reaches your network")
    except NetworkError as error:
        yield Finding(Level.FAILURE, str(error), "an admin looks at isthmus-networkd on this host")


def _certificates(place: Place) -> Iterator[Finding]:
    ends = dict(pki.expiries(place.home.cluster)) if place.home.cluster.pki.is_dir() else {}
    if not ends:
        return
    name, end = min(ends.items(), key=lambda item: item[1])
    words = f"certificates are good until {end:%Y-%m-%d} ({name})"
    if end < datetime.now(UTC):
        yield Finding(Level.FAILURE, f"{name} expired on {end:%Y-%m-%d}", "`isthmus down` and `isthmus up` renew it")
    elif name in pki.AUTHORITIES and end - datetime.now(UTC) < pki.RENEWAL:
        yield Finding(Level.WARNING, words, "authorities are not renewed: save your objects, `isthmus down --purge`")
    else:
        yield Finding(Level.OK, words)


def _cluster(place: Place) -> Iterator[Finding]:
    mine = control_planes(jobs())
    if not mine:
        yield Finding(Level.OK, "the control plane is down; `isthmus up` starts it")
        return
    state = read_json(place.home.cluster.state)
    if state is None or state.get("job") != mine[0].id:
        words = f"job {mine[0].id} is {mine[0].state} ({mine[0].reason}) and not ready"
        yield Finding(Level.WARNING, words, "`isthmus up` waits for it, `isthmus logs job` tells what it does")
        return
    yield from _answer(place, str(state["server"]))
    programs = (read_json(place.home.cluster.programs) or {}).get("programs", {})
    for name, each in programs.items():
        if each["state"] == "backoff" or each["restarts"] >= _RESTARTS:
            words = f"{name} was restarted {each['restarts']} times: {each['ended']}; {each['said']}"
            yield Finding(Level.FAILURE, words, f"`isthmus logs {name}`")


def _answer(place: Place, server: str) -> Iterator[Finding]:
    try:
        api(place.home, server).text("/readyz")
        yield Finding(Level.OK, f"{server} answers")
    except ApiError as error:
        yield Finding(
            Level.FAILURE, str(error), "`isthmus logs kube-apiserver`; `isthmus network list` has the address"
        )
    if not place.home.kubeconfig.exists() or server not in place.home.kubeconfig.read_text(encoding="utf-8"):
        remedy = "`isthmus down` and `isthmus up` write it anew"
        yield Finding(Level.FAILURE, f"{place.home.kubeconfig} is not this cluster's", remedy)
