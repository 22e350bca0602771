"""isthmus-login-followers: forks a process for each user of this host whose cluster's Services are followed.

A Python process of its own for each took 41 MB. So this one loads all that is needed, once, and each fork shares it:
what a fork has of its own is what it has written to. isthmus-networkd says whose Services are to be followed
(`isthmus.network.logins.followers` has the contract), by a connection with which all of this ends. It does not fork
itself: it has neither the rights to become somebody else nor so little in its memory.

What keeps users and root apart:

- This process reads nothing that a user can write: no home, no kubeconfig, no answer of a user's API server. It has no
  secrets, and no threads.
- A fork is the user before it reads anything of the user's: it has closed all descriptors, joined the pod's network and
  a cgroup, and given up the rights of root for good (`isthmus.clients.forks.privileges`). Accounts are looked up there
  too: a directory that does not answer keeps nobody else waiting.
- Nobody but root can look into a fork, the user included; the user can end it, and it is begun again.
"""

from __future__ import annotations

import encodings.idna  # noqa: F401 -- what a fork would import, it would have for itself
import fcntl
import gc
import os
import pwd
import select
import signal
import socket
import ssl
import struct
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from isthmus.cli import login_services
from isthmus.cli.login_services import Surroundings
from isthmus.clients.forks import cgroups, privileges
from isthmus.clients.forks.cgroups import Cgroups
from isthmus.controlplane import settings
from isthmus.controlplane.errors import ControlPlaneError
from isthmus.controlplane.layout import Home
from isthmus.model.network import Driver
from isthmus.network.api.fields import FieldError
from isthmus.network.logins.orders import MESSAGE_BYTES, Operation, Order, encode_answer, read_order
from isthmus.support.journal import say, syslog

# Before one that ended is begun again, and how long the end of one is waited for.
AGAIN_S, STOP_S = 5.0, 1.0
BOUNDS = {"memory.max": str(128 << 20), "pids.max": "32"}
# sd_listen_fds(3), and linux/nsfs.h.
_FIRST_DESCRIPTOR = 3
_NS_GET_NSTYPE, _CLONE_NEWNET = 0xB703, 0x40000000
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin"
Run = Callable[[Path, Surroundings], None]


@dataclass(slots=True)
class Follower:
    """Who follows one user's Services.

    Attributes:
        uid: the user.
        network: a descriptor of the pod's.
        pid: of the process; 0 for none.
        process: a descriptor of it (pidfd_open(2)).
        due_s: when it is begun, if it does not run; None for never.
    """

    uid: int
    network: int
    pid: int = 0
    process: int = -1
    due_s: float | None = None


class Followers:
    """All of them, by one connection of the daemon's.

    Args:
        connection: the daemon's.
        begin: forks one for a uid and a network; returns its process id, 0 where Services are not to be followed.
        groups: their cgroups; None without.
    """

    def __init__(
        self, connection: socket.socket, begin: Callable[[int, int], int], groups: Cgroups | None = None
    ) -> None:
        self._connection, self._begin, self._groups = connection, begin, groups
        self._wanted: dict[int, Follower] = {}
        self._running: dict[int, Follower] = {}
        self._poll = select.epoll()
        self._poll.register(connection, select.EPOLLIN)

    def run(self) -> None:
        """Do what the daemon says until it goes away; then all of them have ended."""
        try:
            while True:
                for descriptor, _ in self._poll.poll(self._pause_s()):
                    if descriptor in self._running:
                        self._reap(self._running[descriptor])
                    elif descriptor == self._connection.fileno() and not self._answer():
                        return
                self._begin_due()
        finally:
            for follower in list(self._wanted.values()):
                self._kill(follower)
            for follower in list(self._running.values()):
                self._wait(follower)

    def _pause_s(self) -> float | None:
        due_s = [each.due_s for each in self._wanted.values() if each.due_s is not None]
        return max(0.0, min(due_s) - time.monotonic()) if due_s else None

    def _answer(self) -> bool:
        """Do one thing that the daemon asks for; return whether it is there still."""
        more = socket.MSG_CMSG_CLOEXEC
        try:
            message, descriptors, flags, _ = socket.recv_fds(self._connection, MESSAGE_BYTES, 4, more)
        except ConnectionError:
            return False
        if not message and not descriptors:
            return False
        try:
            why = self._done(message, descriptors, flags)
        finally:
            for descriptor in descriptors:
                os.close(descriptor)
        try:
            self._connection.send(encode_answer(why))
        except ConnectionError:
            return False
        return True

    def _done(self, message: bytes, descriptors: list[int], flags: int) -> str:
        """Do it; return why not."""
        try:
            if flags & (socket.MSG_TRUNC | socket.MSG_CTRUNC):
                raise FieldError("too long")
            order = read_order(message, len(descriptors))
            if descriptors:
                _check_network(descriptors[0])
        except (FieldError, OSError) as error:
            say(f"what the daemon asks for is refused: {error}")
            return str(error)
        try:
            self._do(order, descriptors)
        except OSError as error:
            return str(error)
        return ""

    def _do(self, order: Order, descriptors: list[int]) -> None:
        if (known := self._wanted.get(order.uid)) and not self._end(known):
            raise OSError(f"that of uid {order.uid} has not ended yet")
        if order.operation is Operation.FOLLOW:
            # Of its own: what came with the message is closed.
            network = fcntl.fcntl(descriptors[0], fcntl.F_DUPFD_CLOEXEC, _FIRST_DESCRIPTOR)
            self._wanted[order.uid] = Follower(order.uid, network, due_s=0.0)

    def _begin_due(self) -> None:
        now_s = time.monotonic()
        for follower in self._wanted.values():
            if follower.due_s is None or follower.due_s > now_s:
                continue
            follower.due_s = None
            try:
                self._begin_one(follower)
            except (OSError, ControlPlaneError) as error:
                say(f"Services of uid {follower.uid} are not followed now: {error}")
                follower.due_s = now_s + AGAIN_S

    def _begin_one(self, follower: Follower) -> None:
        pid = self._begin(follower.uid, follower.network)
        if not pid:
            return
        try:
            process = os.pidfd_open(pid)
        except OSError:
            # Not reaped yet, so it is nobody else.
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            raise
        follower.pid, follower.process = pid, process
        self._running[process] = follower
        self._poll.register(process, select.EPOLLIN)

    def _end(self, follower: Follower) -> bool:
        """End one for good; return whether it has ended."""
        del self._wanted[follower.uid]
        self._kill(follower)
        os.close(follower.network)
        return self._wait(follower)

    def _kill(self, follower: Follower) -> None:
        follower.due_s = None
        if follower.process >= 0:
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(follower.process, signal.SIGKILL)
        if self._groups:
            self._groups.end(str(follower.uid))

    def _wait(self, follower: Follower) -> bool:
        if follower.process < 0:
            return True
        poll = select.poll()
        poll.register(follower.process, select.POLLIN)
        if not poll.poll(1000 * STOP_S):
            return False
        self._reap(follower)
        return True

    def _reap(self, follower: Follower) -> None:
        _, status = os.waitpid(follower.pid, 0)
        self._poll.unregister(follower.process)
        del self._running[follower.process]
        os.close(follower.process)
        follower.pid, follower.process = 0, -1
        if self._groups:
            self._groups.end(str(follower.uid))
        if self._wanted.get(follower.uid) is follower:
            ended = os.waitstatus_to_exitcode(status)
            say(f"who follows Services of uid {follower.uid} ended ({ended}); again in {AGAIN_S:g} s")
            follower.due_s = time.monotonic() + AGAIN_S


def _check_network(descriptor: int) -> None:
    """Refuse what is no network namespace, or this process's own: the host's.

    Raises:
        FieldError: it is.
    """
    try:
        kind = fcntl.ioctl(descriptor, _NS_GET_NSTYPE)
    except OSError as error:
        raise FieldError(f"no namespace ({error.strerror})") from error
    if kind != _CLONE_NEWNET:
        raise FieldError("a namespace that is no network")
    if os.path.samestat(os.fstat(descriptor), os.stat("/proc/self/ns/net")):
        raise FieldError("the host's network")


def follow(kubeconfig: Path, surroundings: Surroundings) -> None:
    """Follow the cluster of a kubeconfig; never returns."""
    login_services.run(kubeconfig, login_services.put, surroundings=surroundings)


def begin(uid: int, network: int, groups: Cgroups | None = None, run: Run = follow) -> int:
    """Fork who follows a user's Services; return its process id, 0 where this site's have no addresses.

    Raises:
        ControlPlaneError: this host has no settings of Kubernetes.
        OSError: there are too many processes.
    """
    site = settings.read()
    if site.headless or site.driver is not Driver.PRIVATE:
        return 0
    return fork(uid, network, groups, run)


def fork(uid: int, network: int, groups: Cgroups | None, run: Run) -> int:
    """Fork a process that runs as a user in a network; return its process id. Raises OSError."""
    group = groups.make(str(uid)) if groups else -1
    try:
        parent = os.getpid()
        pid = os.fork()
        if not pid:
            _be(uid, network, group, parent, run)
    finally:
        if group >= 0:
            os.close(group)
    return pid


def _be(uid: int, network: int, group: int, parent: int, run: Run) -> NoReturn:
    """Become the user, and run; whatever happens, nothing goes on in what was the parent's."""
    # By a connection of its own: by the parent's a user could write into what others say.
    status, own = 1, syslog("isthmus-login-services")
    try:
        privileges.end_with_parent(parent)
        os.setsid()
        # While the host's network is there: a directory of accounts may be asked by it.
        account = pwd.getpwuid(uid)
        members = os.getgrouplist(account.pw_name, account.pw_gid)
        if group >= 0:
            cgroups.join(group)
        network = privileges.close_all_but(network)
        privileges.enter_network(network)
        os.close(network)
        privileges.become(uid, account.pw_gid, members, parent)
        gc.enable()
        run(Home(Path(account.pw_dir)).kubeconfig, Surroundings(own))
        status = 0
    except BaseException as error:
        own(f"Services of uid {uid}: {type(error).__name__}: {error}")
    finally:
        os._exit(status)


def prepare() -> None:
    """Have, for all forks, what a unit of systemd's with `User=` has; they execute nothing, so none needs a HOME."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    os.umask(0o022)
    os.chdir("/")
    os.environ.clear()
    os.environ["PATH"] = _PATH


def load() -> None:
    """Have in memory, before any fork, what each of them would write there."""
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    hello = tls.wrap_bio(ssl.MemoryBIO(), ssl.MemoryBIO(), server_hostname="127.0.0.1")
    with suppress(ssl.SSLWantReadError):
        hello.do_handshake()
    # What is collected leaves holes, which forks would fill with pages of their own.
    gc.freeze()


def _connection() -> socket.socket:
    """Return the daemon's connection, of the socket that systemd listens at.

    Raises:
        OSError: there is no such socket, or the peer is not root.
    """
    if os.environ.get("LISTEN_PID") != str(os.getpid()) or os.environ.get("LISTEN_FDS") != "1":
        raise OSError("systemd starts this program, by isthmus-login-followers.socket")
    # What asks meanwhile waits there until this process has ended, and the next one begins.
    with socket.socket(fileno=_FIRST_DESCRIPTOR) as listening:
        connection, _ = listening.accept()
    _, peer, _ = struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
    if peer != 0:
        raise OSError(f"uid {peer} is not root")
    return connection


def _groups() -> Cgroups | None:
    try:
        return Cgroups.below_own(BOUNDS)
    except OSError as error:
        say(f"who follows Services has no cgroup of its own, and the bounds of each process alone: {error}")
        return None


def main() -> int:
    """Fork and end what the daemon says, until it goes away."""
    gc.disable()
    try:
        connection = _connection()
    except OSError as error:
        print(error, file=sys.stderr)
        return 2
    groups = _groups()
    prepare()
    load()
    Followers(connection, lambda uid, network: begin(uid, network, groups), groups).run()
    return 0


if __name__ == "__main__":
    sys.exit(main())
