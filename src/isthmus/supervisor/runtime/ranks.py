"""An MPI program of a container, over all nodes of the job.

It is one process per task. srun starts `rank` on each node, or Apptainer where each node has one rank; ranks of a node
share a container (`rank_container`). They have the user's own id, no capability, and Slurm's and PMIx's variables. They
see the image, which they cannot write, a /tmp, the node's /dev/shm, by which ranks of a node meet, and what the pod
mounts; the home only if the pod's annotation says so.

On the first node, where the pod is, ranks see all of its volumes: each joins the pod's namespaces first (`rank`, which
asks here by a socket of the host). On other nodes there are those of kind `host` and `image` alone; nobody could
resolve a part of a `host` volume safely there, so there is none.

Where a wrapper stands before the program (`argoexec emissary -- PROGRAM`), that runs once, in the container's sandbox,
and what it starts is `proxy` in place of the program: that asks here by a socket in the sandbox, and srun is started
with its streams, words, variables and folder. A program at a time: a step is work for slurmctld.
"""

from __future__ import annotations

import asyncio
import json
import os
import pwd
import signal
import socket
import struct
import sys
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from isthmus.podproto.plan import Container, Volume
from isthmus.supervisor.report import Exit
from isthmus.supervisor.runtime import inside, namespaces, rank_container
from isthmus.supervisor.runtime.processes import Place, Process, Program, StartError
from isthmus.supervisor.runtime.sandbox import Pod, bind, gpus, ranks_folder
from isthmus.supervisor.volumes import registry
from isthmus.supervisor.volumes.mounts import Folders

# Where ranks of one node meet, and what carries their messages; Apptainer skips a bind of /dev/shm by this very name.
_SHARED = {"/dev/shm": "/proc/self/root/dev/shm", "/dev/infiniband": "/dev/infiniband"}  # noqa: S108
# The step's own folder, by which Slurm's PMIx hands a rank what it must know; only the step knows its name.
_BEGIN = (
    "d=${SLURM_PMIX_TMPDIR:-/tmp}/spmix_appdir_$(id -u)_$SLURM_JOB_ID.$SLURM_STEP_ID;"
    ' [ ! -d "$d" ] || export APPTAINER_BIND="$d";'
    ' [ "$SLURMD_NODENAME" != "$1" ] || exec "$2" -I -m "$3" "$4";'
    # Slurm's counts of tasks, such as 2(x3),1: one rank on each node needs no Python.
    ' case "$SLURM_STEP_TASKS_PER_NODE" in *,*) ;; "" | 1 | "1("*) shift 5; exec "$@";; esac;'
    ' exec "$2" -I -m "$3" "" "$5"'
)
_JOIN = "join"
_END_S = 5.0
_PASSED = frozenset(
    {signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2, signal.SIGALRM, signal.SIGTERM}
)
_CREDENTIALS = struct.Struct("3i")
_NUMBER = struct.Struct("<i")


def srun_command(container: Container, join: Path, elsewhere: Mapping[str, Any]) -> list[str]:
    """Return srun's words for a program.

    Args:
        container: whose it is.
        join: the socket by which ranks of the first node ask.
        elsewhere: what ranks of other nodes do, as `rank` has it.
    """
    # The job was submitted with --export=NIL, which srun would take over: its tasks would have neither PATH nor env.
    srun = ["srun", "--quiet", "--overlap", "--export=ALL", *container.mpi_flags]
    srun += [f"--mem={container.memory_mib}"] if container.memory_mib is not None else []
    first = [os.environ.get("SLURMD_NODENAME", ""), sys.executable, f"{__package__}.rank", str(join)]
    return [*srun, "sh", "-c", _BEGIN, "sh", *first, json.dumps(elsewhere), *elsewhere["argv"]]


def document(container: Container, mounts: list[str], folder: str, argv: list[str]) -> dict[str, Any]:
    """Return what ranks of a node do, as `rank` has it.

    Args:
        container: whose they are.
        mounts: of volumes, from `bind`.
        folder: where the program starts; empty for the root.
        argv: the program and its words.
    """
    own = {place: source for place, source in _SHARED.items() if Path(place).exists()}
    if container.mpi_home:
        home = pwd.getpwuid(os.getuid()).pw_dir
        own[home] = home
    mounts = [*(bind(source, place, read_only=False) for place, source in own.items()), *mounts]
    begin = [
        *("apptainer", "--quiet", "exec", "--contain", "--no-home"),
        *("--no-mount", "home,hostfs,bind-paths,cwd"),
        *gpus(),
        *(word for mount in mounts for word in ("--mount", mount)),
    ]
    hold = bind(str(inside.FOLDER / inside.HOLD), rank_container.HELD, read_only=True)
    return {
        "argv": [*begin, "--pwd", folder or "/", container.image, *argv],
        "held": [*begin, "--mount", hold, container.image, rank_container.HELD],
        "program": argv,
        "folder": folder,
    }


def mounts_elsewhere(container: Container, volumes: Iterable[Volume]) -> list[str]:
    """Return what ranks of other nodes see of the volumes.

    Raises:
        StartError: what ranks cannot have.
    """
    known = {volume.name: volume for volume in volumes}
    shared = [(mount, known[mount.volume]) for mount in container.mounts]
    return [
        registry.of(volume).rank_mount(mount, volume) for mount, volume in shared if registry.of(volume).is_on_all_nodes
    ]


def mounts_here(container: Container, volumes: Iterable[Volume], folders: Folders) -> list[str]:
    """Return what ranks of the pod's node see of the volumes, as its mounts have it.

    Raises:
        StartError: what ranks cannot have.
    """
    known = {volume.name: volume for volume in volumes}
    found = []
    for number, mount in enumerate(container.mounts):
        volume = known[mount.volume]
        kind = registry.of(volume)
        if kind.is_on_all_nodes:
            found.append(kind.rank_mount(mount, volume))
            continue
        # The sandbox has resolved it, and shows it there.
        part = folders.parts / container.name / str(number)
        source = str(part) if mount.sub_path else str(folders.volume(volume))
        found.append(bind(source, mount.path, read_only=mount.read_only or kind.is_read_only))
    return found


def environment(env: Mapping[str, str], own: Mapping[str, str]) -> dict[str, str]:
    """Return the job's own variables, and the container's as Apptainer brings them in: by name, on no command line."""
    return {**own, **{f"APPTAINERENV_{name}": value for name, value in env.items()}}


class Ranks:
    """What starts the programs of one MPI container, from before its sandbox is made until it is closed.

    Args:
        pod: the pod.
        container: which of its containers.
    """

    def __init__(self, pod: Pod, container: Container) -> None:
        self._pod, self._container = pod, container
        self._here: dict[str, Any] = {}
        self._listening: list[socket.socket] = []
        self._serving: list[asyncio.Future[None]] = []
        self._srun: Process | None = None

    def open(self) -> None:
        """Begin to answer.

        Raises:
            StartError: the node's disk is full, or has no `proxy`.
        """
        folder = ranks_folder(self._pod.folders)
        try:
            folder.mkdir(parents=True, exist_ok=True)
            folder.chmod(0o755)  # the script's umask
            inside.copy(inside.PROXY, folder / Path(inside.START).name)
            asking = _listen(folder / inside.SOCKET, socket.SOCK_SEQPACKET)
            joining = _listen(folder.parent / _JOIN, socket.SOCK_STREAM)
        except OSError as error:
            raise StartError(f"ranks cannot be started: {error}") from error
        self._listening = [asking, joining]
        self._serving = [asyncio.ensure_future(self._answer(joining)), asyncio.ensure_future(self._serve(asking))]

    def behind_wrapper(self, program: Program) -> Program | None:
        """Return the wrapper that starts a program through here; None where there is none."""
        count = self._container.mpi_wrapper
        argv = list(program.argv)
        return replace(program, argv=[*argv[:count], inside.START, *argv[count:]]) if count else None

    async def start(self, program: Program, streams: tuple[int, int, int]) -> Process:
        """Start a program; the process is srun.

        Raises:
            StartError: there is no srun, or it mounts what ranks cannot have.
        """
        one, volumes, argv = self._container, self._pod.plan.volumes, list(program.argv)
        self._here = document(one, mounts_here(one, volumes, self._pod.folders), program.cwd, argv)
        elsewhere = document(one, mounts_elsewhere(one, volumes), program.cwd, argv)
        words = srun_command(one, ranks_folder(self._pod.folders).parent / _JOIN, elsewhere)
        srun = Program(words, environment(program.env, os.environ))
        self._srun = await self._pod.processes.start(srun, Place(), streams)
        return self._srun

    async def close(self) -> None:
        """End what still runs, and answer no more."""
        for task in self._serving:
            task.cancel()
        for each in self._listening:
            each.close()
        await asyncio.gather(*self._serving, return_exceptions=True)
        await self._end()

    async def _end(self) -> None:
        srun, self._srun = self._srun, None
        if srun is not None:
            srun.kill(signal.SIGTERM)
            if not await srun.ended(_END_S):
                srun.kill(signal.SIGKILL)

    async def _answer(self, listening: socket.socket) -> None:
        """Give ranks of this node what they execute, and where."""
        loop = asyncio.get_running_loop()
        while True:
            connection, _ = await loop.sock_accept(listening)
            with connection, suppress(OSError, StartError):
                place = namespaces.opened(self._pod.spaces.pid, ("user", "mnt", "pid"))
                try:
                    message = json.dumps(self._here | {"kinds": [kind for _, kind in place.namespaces]}).encode()
                    sent = socket.send_fds(connection, [message], place.descriptors)
                finally:
                    place.close()
                await loop.sock_sendall(connection, message[sent:])

    async def _serve(self, listening: socket.socket) -> None:
        """Start what a wrapper starts, one after the other."""
        loop = asyncio.get_running_loop()
        while True:
            connection, _ = await loop.sock_accept(listening)
            with connection, suppress(OSError):
                await self._run(connection)

    async def _run(self, connection: socket.socket) -> None:
        await _readable(connection)
        _, streams, _, _ = socket.recv_fds(connection, 1, inside.STREAMS)
        try:
            if len(streams) != inside.STREAMS:
                return
            srun = await self.start(_asked(connection), (streams[0], streams[1], streams[2]))
        except StartError as error:
            # Where the program's own words would be.
            with suppress(OSError):
                os.write(streams[2], f"{error}\n".encode())
            connection.send(_NUMBER.pack(128))
            return
        finally:
            for each in streams:
                os.close(each)
        passing = asyncio.ensure_future(self._pass_signals(connection, srun))
        waited: list[asyncio.Future[Any]] = [passing, srun.status]
        await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
        passing.cancel()
        if srun.status.done():
            connection.send(_NUMBER.pack(Exit.of_status(srun.status.result()).code))
        await self._end()

    async def _pass_signals(self, connection: socket.socket, srun: Process) -> None:
        """Hand on the signals that the proxy gets; returns when that has ended."""
        while True:
            await _readable(connection)
            message = connection.recv(_NUMBER.size)
            if len(message) != _NUMBER.size:
                return
            if (number := _NUMBER.unpack(message)[0]) in _PASSED:
                srun.kill(number)


def _asked(connection: socket.socket) -> Program:
    """Return what a proxy was started with."""
    option = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    proc = Path("/proc", str(_CREDENTIALS.unpack(option)[0]))
    words = os.fsdecode((proc / "cmdline").read_bytes()).split("\0")[1:-1]
    variables = (each.partition("=") for each in os.fsdecode((proc / "environ").read_bytes()).split("\0"))
    env = {name: value for name, equals, value in variables if name and equals}
    if not words:
        raise StartError(f"{inside.START} was given no program to start")
    return Program(words, env, os.readlink(proc / "cwd"))


def _listen(path: Path, kind: socket.SocketKind) -> socket.socket:
    with suppress(FileNotFoundError):
        path.unlink()
    listening = socket.socket(socket.AF_UNIX, kind | socket.SOCK_CLOEXEC)
    try:
        listening.bind(str(path))
        listening.listen()
        listening.setblocking(False)
    except OSError:
        listening.close()
        raise
    return listening


async def _readable(connection: socket.socket) -> None:
    loop = asyncio.get_running_loop()
    ready: asyncio.Future[None] = loop.create_future()
    loop.add_reader(connection, _resolve, ready)
    try:
        await ready
    finally:
        loop.remove_reader(connection)


def _resolve(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
