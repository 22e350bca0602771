"""One run of a control plane: writes its files, starts its programs, stops them; all dependencies are passed in."""

from __future__ import annotations

import asyncio
import json
import logging
import os
from base64 import b64encode
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from secrets import token_bytes

from isthmus.clients import sockets
from isthmus.clients.etcd.gateway import Access as EtcdAccess
from isthmus.clients.etcd.gateway import EtcdError, Gateway
from isthmus.clients.kube.apiserver import Access, ApiServer
from isthmus.clients.kube.errors import KubeError
from isthmus.controlplane import bootstrap, programs
from isthmus.controlplane.data.snapshotter import Saver
from isthmus.controlplane.launcher import Launch
from isthmus.controlplane.layout import Home, Layout
from isthmus.controlplane.pki import authorities, kubeconfig
from isthmus.controlplane.pki import issuing as pki
from isthmus.controlplane.process_supervisor import Keeper, Program, shorten
from isthmus.controlplane.programs import Site
from isthmus.controlplane.versions import stored
from isthmus.controlplane.versions.trial import Trial
from isthmus.model import skew
from isthmus.support import durable
from isthmus.support.backoff import Backoff

SERVING = ("etcd", "kube-apiserver", "kube-controller-manager", "coredns")
# What a version that does not serve needs for its changes to the data.
_BRIEF = SERVING[:3]
# The step after which every program has its rights.
OBJECTS = "objects"
# The step after which a version that is new to the data can read them.
READABLE = "readable"
# The step after which nothing of this version goes back.
STAYS = "stays"
RENEWAL_CHECK_S = 12 * 3600.0
LOG_CHECK_S = 600.0
_RETRY_S, _RETRY_MOST_S = 1.0, 5.0
# Until a home that took no file is tried again.
_HOME_S = 5.0
_PROBE_S = 3.0
# Of a program that runs, as kubeadm's liveness probes wait: on a busy node an answer takes seconds.
_ALIVE_S = 15.0
_ACCOUNT_S = 0.2

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Run:
    """The parts of one run.

    Attributes:
        job: Slurm's id.
        user: the owner's login name.
        home: where the files are.
        site: of this start.
        launch: starts the image's programs.
        locks: the descriptors of the locks, which the image's programs get.
        saver: of data on the node's disk.
        hosts: further names of the job.
        trial: of a version of Kubernetes that is new to the data.
    """

    job: str
    user: str
    home: Home
    site: Site
    launch: Launch
    locks: tuple[int, ...]
    hosts: tuple[str, ...] = ()
    saver: Saver | None = None
    trial: Trial | None = None

    @property
    def is_brief(self) -> bool:
        """Whether this version only leads to another one."""
        return self.trial is not None and not self.trial.is_last


async def run(setup: Run, on_keeper: Callable[[Keeper], None] = lambda _: None) -> None:
    """Run a control plane until its keeper is stopped.

    Args:
        setup: of this run.
        on_keeper: gets the keeper, before anything starts.
    """
    layout = setup.home.cluster
    layout.state.unlink(missing_ok=True)
    prepare(setup)
    changed = asyncio.Event()
    keeper = Keeper(_programs(setup), layout.logs, changed.set)
    on_keeper(keeper)
    async with asyncio.TaskGroup() as group:
        beside = [
            group.create_task(_renew(setup), name="renewal"),
            group.create_task(_shorten(layout), name="log"),
            group.create_task(_serve(setup, keeper), name="bootstrap"),
            group.create_task(_save(setup, keeper), name="snapshots"),
            group.create_task(_write_changes(layout, keeper, changed), name="conditions"),
        ]
        if setup.trial is not None:
            beside.append(group.create_task(setup.trial.watch(keeper), name="trial"))
            beside.append(group.create_task(_make_readable(setup, keeper), name="readable"))
        try:
            await keeper.run()
        finally:
            for task in beside:
                task.cancel()
            with suppress(OSError):
                _write_programs(layout, keeper)
            with suppress(OSError):
                layout.state.unlink(missing_ok=True)


def prepare(setup: Run) -> None:
    """Write every file that the programs read."""
    layout, site = setup.home.cluster, setup.site
    for folder in (layout.pki, layout.logs, *([] if setup.saver else [layout.etcd])):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    for step in authorities.advance(layout, datetime.now(UTC)):
        _log.info("%s", step)
    if made := pki.ensure(layout, _names(setup)):
        _log.info("new keys and certificates: %s", " ".join(made))
    if not layout.encryption.exists():
        durable.write(layout.encryption, programs.encryption(b64encode(token_bytes(32)).decode()), 0o600)
    durable.write(layout.audit_policy, programs.AUDIT_POLICY, 0o600)
    durable.write(layout.corefile, programs.corefile(site), 0o600)
    for program in ("controller-manager", "coredns", "kubelet"):
        durable.write(layout.kubeconfig(program), kubeconfig.of_program(program, site.local_server), 0o600)
    _write_kubeconfig(setup)


def _names(setup: Run) -> pki.Names:
    settings = setup.site.settings
    return pki.Names(
        setup.user, settings.node, settings.domain, settings.api_service, setup.hosts, (setup.site.address,)
    )


def _write_kubeconfig(setup: Run) -> None:
    text = kubeconfig.of_user(setup.home.cluster, setup.site.server)
    durable.write(setup.home.kubeconfig, text, 0o600)
    kubeconfig.refresh(setup.home.usual_kubeconfig, setup.home.kubeconfig)


def _programs(setup: Run) -> list[Program]:
    layout, site = setup.home.cluster, setup.site
    ports, local = site.ports, f"https://{programs.LOOPBACK}"

    def one(
        name: str, arguments: list[str], url: str, path: str, client: str, needs: tuple[str, ...], alive: str = ""
    ) -> Program:
        farewell = partial(_last, setup, setup.saver) if setup.saver and name == "etcd" else None
        memory = programs.memory_limit(name, site.settings.memory_mib)
        ca = "etcd-ca" if name == "etcd" else "ca"
        access = Access(url, layout.certificate(ca), layout.certificate(client), layout.key(client))
        api, patient = ApiServer(access, _PROBE_S), ApiServer(access, _ALIVE_S)
        argv = tuple(setup.launch(name, arguments, memory))
        return Program(
            name,
            argv,
            lambda: _answers(api, path),
            needs,
            keep=setup.locks,
            farewell=farewell,
            is_alive=lambda: _is_alive(patient, alive or path),
        )

    data = ("etcd", *((READABLE,) if setup.trial else ()))
    api_url = site.local_server
    manager_url = f"{local}:{ports.controller_manager}"
    dns_url = f"http://{programs.LOOPBACK}:{ports.dns_ready}"
    made = [
        one("etcd", programs.etcd(site), site.etcd, "/health", "apiserver-etcd-client", (), "/version"),
        one("kube-apiserver", programs.apiserver(site), api_url, "/readyz", "admin", data, "/livez/ping"),
        one(
            "kube-controller-manager",
            programs.controller_manager(site),
            manager_url,
            "/healthz",
            "admin",
            ("kube-apiserver",),
        ),
        one("coredns", programs.coredns(site), dns_url, "/ready", "admin", ("kube-apiserver", OBJECTS)),
        _kubelet(setup),
    ]
    return [each for each in made if each.name in _BRIEF] if setup.is_brief else made


def _kubelet(setup: Run) -> Program:
    layout, site = setup.home.cluster, setup.site
    environment = {
        "ISTHMUS_CLUSTER_DIR": str(layout.folder),
        "ISTHMUS_NODE_NAME": site.settings.node,
        "ISTHMUS_ADDRESS": str(site.address),
        "ISTHMUS_KUBELET_PORT": str(site.ports.kubelet),
        "ISTHMUS_CHANNEL_PORT": str(site.ports.channel),
        "ISTHMUS_KUBERNETES": site.kubernetes,
        "ISTHMUS_FIGURES": "yes" if site.figures else "no",
    }
    return Program(
        "kubelet",
        site.settings.kubelet,
        lambda: sockets.listens(str(site.address), site.ports.kubelet),
        # What a version that fails has written starts no pod.
        ("kube-apiserver", OBJECTS, *((STAYS,) if setup.trial else ())),
        environment,
    )


def _answers(api: ApiServer, path: str) -> bool:
    try:
        api.text(path)
    except KubeError:
        return False
    return True


def _is_alive(api: ApiServer, path: str) -> bool:
    """Return whether a program answers at all; what it says of itself is not asked."""
    try:
        api.text(path)
    except KubeError as error:
        return error.status is not None
    return True


async def _serve(setup: Run, keeper: Keeper) -> None:
    """Make the objects as soon as they can be made, then say that the cluster is ready."""
    layout, site = setup.home.cluster, setup.site
    if setup.trial is not None and setup.is_brief:
        if await keeper.ready(*_BRIEF):
            await _etcd_in_step(setup)
            setup.trial.over.set()
            keeper.stop()
        return
    if not await keeper.ready("kube-apiserver"):
        return
    api = ApiServer(
        Access(site.local_server, layout.certificate("ca"), layout.certificate("admin"), layout.key("admin"))
    )
    backoff = Backoff(_RETRY_S, _RETRY_MOST_S)
    while True:
        try:
            await asyncio.to_thread(bootstrap.apply, api, site.settings.node, headless=site.settings.headless)
            keeper.done(OBJECTS)
            break
        except KubeError as error:
            _log.warning("the cluster's own objects could not be made yet: %s", error)
            await asyncio.sleep(backoff.next_s())
    if await keeper.ready(*SERVING):
        await _account_made(api)
        if setup.trial is not None:
            await _etcd_in_step(setup)
            await _until_done(setup.trial.record, layout.versions)
            setup.trial.over.set()
            keeper.done(STAYS)
        document = {
            "schema": 1,
            "job": setup.job,
            "address": str(site.address),
            "server": site.server,
            "ports": asdict(site.ports),
            "kubernetes": site.kubernetes,
        }
        await _until_done(partial(durable.write, layout.state, json.dumps(document) + "\n", 0o600), layout.state)
        _log.info("ready at %s", site.server)


async def _make_readable(setup: Run, keeper: Keeper) -> None:
    """Rewrite what the version could not read, before its API server starts."""
    layout, name = setup.home.cluster, "apiserver-etcd-client"
    version = programs.GROUPS.get(skew.release(setup.site.kubernetes), "")
    access = EtcdAccess((setup.site.etcd,), layout.certificate("etcd-ca"), layout.certificate(name), layout.key(name))
    while await keeper.ready("etcd"):
        try:
            if count := await asyncio.to_thread(_rewritten, access, version):
                _log.info("%d groups of pods are kept as Kubernetes %s has them", count, setup.site.kubernetes)
            keeper.done(READABLE)
            return
        except EtcdError as error:
            _log.warning("data of the version before could not be read yet: %s", error)
            await asyncio.sleep(_RETRY_S)


def _rewritten(access: EtcdAccess, version: str) -> int:
    gateway = Gateway(access)
    try:
        return stored.rewrite(gateway, version)
    finally:
        gateway.close()


async def _etcd_in_step(setup: Run) -> None:
    """Wait until etcd writes as its own release does: some seconds after its start, and never skipping one."""
    layout, name = setup.home.cluster, "apiserver-etcd-client"
    access = Access(setup.site.etcd, layout.certificate("etcd-ca"), layout.certificate(name), layout.key(name))
    api = ApiServer(access, _PROBE_S)
    while True:
        with suppress(KubeError):
            found = await asyncio.to_thread(api.get, "/version")
            if skew.release(str(found.get("etcdcluster"))) == skew.release(str(found.get("etcdserver"))):
                return
        await asyncio.sleep(_RETRY_S)


async def _until_done(write: Callable[[], None], path: Path) -> None:
    """Write a file, however long the home does not take it; nothing else waits for it."""
    while True:
        try:
            await asyncio.to_thread(write)
            return
        except OSError as error:
            _log.warning("%s cannot be written: %s; it is retried, check the home", path, error)
            await asyncio.sleep(_HOME_S)


async def _account_made(api: ApiServer) -> None:
    """Wait for the account that pods run as, which the controller manager makes: without it no pod is taken."""
    while True:
        try:
            await asyncio.to_thread(api.get, "/api/v1/namespaces/default/serviceaccounts/default")
            return
        except KubeError:
            await asyncio.sleep(_ACCOUNT_S)


async def _save(setup: Run, keeper: Keeper) -> None:
    """Save what is there to stay: a trial's data may have to go back."""
    if setup.saver and not setup.is_brief and await keeper.ready("etcd"):
        if setup.trial is not None:
            await setup.trial.over.wait()
        await setup.saver.run(keeper.stop)


async def _last(setup: Run, saver: Saver) -> None:
    if setup.trial is None or (setup.trial.is_last and setup.trial.over.is_set()):
        await saver.last()


async def _renew(setup: Run) -> None:
    """Programs read renewed files by themselves; only the user's kubeconfig holds a copy."""
    while True:
        await asyncio.sleep(RENEWAL_CHECK_S)
        try:
            if made := await asyncio.to_thread(pki.ensure, setup.home.cluster, _names(setup)):
                _log.info("renewed: %s", " ".join(made))
                await asyncio.to_thread(_write_kubeconfig, setup)
        except OSError as error:
            _log.warning("certificates could not be checked: %s; it is retried, check the home", error)


async def _shorten(layout: Layout) -> None:
    """Bound what this program itself says over months; those it starts have logs of their own."""
    while True:
        with suppress(OSError):
            await asyncio.to_thread(shorten, layout.job_log)
        await asyncio.sleep(LOG_CHECK_S)


async def _write_changes(layout: Layout, keeper: Keeper, changed: asyncio.Event) -> None:
    """Write how the programs are, at most once at a time: nothing waits for a home that is slow or takes nothing."""
    failed = False
    while True:
        await changed.wait()
        changed.clear()
        try:
            await asyncio.to_thread(_write_programs, layout, keeper)
            failed = False
        except OSError as error:
            if not failed:
                _log.warning("the programs' state cannot be written: %s; they continue, check the home", error)
            failed = True
            changed.set()
            await asyncio.sleep(_HOME_S)


def _write_programs(layout: Layout, keeper: Keeper) -> None:
    text = json.dumps({"schema": 1, "programs": keeper.states()}, indent=1) + "\n"
    # Not durable: it is worth nothing after a crash, and a sync may take long.
    temporary = Path(f"{layout.programs}.new")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
    temporary.replace(layout.programs)
