"""A process namespace for all containers of a pod: `shareProcessNamespace`.

It is a child of the pod's own, which has Apptainer's processes, so no container sees them: they see the node's files as
the user does, and a process with CAP_SYS_PTRACE could read through them. Process 1 only reaps. It
is a fork of the supervisor, whose memory, root and working directory are protected (see `linux.hide`).
"""

from __future__ import annotations

import os
import signal
import socket

from isthmus.supervisor.runtime import linux
from isthmus.supervisor.runtime.processes import Place, StartError, join

_NAME = "pause"


def share(place: Place) -> int:
    """Make such a namespace in a pod's; return its descriptor.

    Raises:
        StartError: the kernel does not allow it.
    """
    ours, theirs = socket.socketpair()
    with ours:
        between = os.fork()
        if not between:
            _fork_inside(place, theirs)
        theirs.close()
        said, descriptors, _, _ = socket.recv_fds(ours, 4000, 1)
        os.waitpid(between, 0)
    if not descriptors:
        why = said.decode(errors="replace") or "the process between was killed"
        raise StartError(f"the pod's processes cannot be shared: {why}")
    return descriptors[0]


def mount_proc() -> None:
    """Mount a /proc of the joined process namespace, over the one that is there.

    Raises:
        OSError: the kernel does not allow it.
    """
    # A process that joins such a namespace is not in it; its children are.
    pid = os.fork()
    if not pid:
        try:
            linux.mount_proc()
        except OSError as error:
            os._exit(error.errno or 1)
        os._exit(0)
    _, status = os.waitpid(pid, 0)
    if status:
        raise OSError(f"/proc of shared processes cannot be mounted: {os.strerror(os.WEXITSTATUS(status))}")


def _fork_inside(place: Place, peer: socket.socket) -> None:
    try:
        null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
        join(place, (null, null, null), (peer.fileno(),))
        if os.fork():
            os._exit(0)
        linux.unshare(linux.NEWPID)
        if not os.fork():
            _reap_for_ever()
        made = os.open("/proc/self/ns/pid_for_children", os.O_RDONLY | os.O_CLOEXEC)
        socket.send_fds(peer, [b"+"], [made])
    except OSError as error:
        peer.sendall(str(error).encode()[:4000])
    os._exit(0)


def _reap_for_ever() -> None:
    linux.hide()
    os.setsid()
    linux.name_process(_NAME)
    linux.close_all([])
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    # With SIGCHLD ignored the kernel reaps.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while True:
        signal.pause()
