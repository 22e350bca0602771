"""Runs a program that can write to one folder alone.

Apptainer writes files of its own into an image that it has unpacked, and follows the links that the image brought; so
does skopeo with an OCI archive's. So they run where nothing else can be written:

    user, mount, network and IPC namespaces of its own, without a right in any of them
    every mount read-only; the user's own places (home, /tmp ...) covered by empty ones
    the one folder, writable, where it was

A link then leads to a file that is not there, or cannot be written. The kernel holds this, not the program: a mount
that came read-only from another user namespace stays so. FIFOs, sockets and terminals can be opened on read-only
mounts, which is why the user's places are covered and there is neither a network nor a /dev/tty.

`command` gives the words; this file is then run by itself, without Isthmus, so that it starts in some ten milliseconds.
mount_setattr(2) is of Linux 5.12; user_namespaces(7), mount_namespaces(7).
"""

import ctypes
import fcntl
import os
import pwd
import shutil
import sys
import termios
from typing import NoReturn

# The status of this file's own failures; Apptainer's is 255.
STATUS = 125
REMEDY = "it needs Linux 5.12, and user namespaces that users may make (user.max_user_namespaces, AppArmor)"

_NR_OPEN_TREE, _NR_MOVE_MOUNT, _NR_MOUNT_SETATTR = 428, 429, 442  # Equal on all machines.
_CLONE = 0x00020000 | 0x08000000 | 0x10000000 | 0x40000000  # NEWNS, NEWIPC, NEWUSER, NEWNET
_MS_NOSUID, _MS_NODEV, _MS_REC, _MS_PRIVATE = 2, 4, 0x4000, 1 << 18
_AT_FDCWD, _AT_EMPTY_PATH, _AT_RECURSIVE = -100, 0x1000, 0x8000
_OPEN_TREE_CLONE, _OPEN_TREE_CLOEXEC = 1, os.O_CLOEXEC
_MOVE_MOUNT_F_EMPTY_PATH = 4
_MOUNT_ATTR_RDONLY = 1
_PR_SET_NO_NEW_PRIVS = 38
_SHARED = ("/tmp", "/var/tmp", "/dev/shm", "/dev/pts", "/dev/mqueue", "/run/user")  # noqa: S108

_libc = ctypes.CDLL(None, use_errno=True)


def command(folder: str, argv: list[str], source: str = "") -> list[str]:
    """Return the words that run a program where it can write to `folder` alone.

    Args:
        folder: the caller's own, nobody else's.
        argv: the program, found by PATH, and its arguments.
        source: a file that it reads, wherever it lies; without links in its path.
    """
    return [sys.executable, "-I", "-S", os.path.abspath(__file__), folder, source, "--", *argv]


def confine(folder: str, source: str = "") -> None:
    """Let this process, and what it starts, write below `folder` alone.

    Args:
        folder: where it may write.
        source: a file that stays readable though its folder is covered.

    Raises:
        OSError: the kernel did not let it; nothing may be unpacked then.
    """
    covered = _covered()
    _leave_terminal()
    _namespaces()
    _checked("making mounts private", _libc.mount(None, b"/", None, _MS_REC | _MS_PRIVATE, None))
    # Before all is read-only: a copy of a mount has its flags.
    kept = [(folder, _copied(folder))]
    _read_only("/", _AT_RECURSIVE)
    if os.path.isfile(source):
        kept.append((source, _copied(source)))
    for place in covered:
        options = _MS_NOSUID | _MS_NODEV, b"mode=755,size=1m"
        _checked(f"covering {place}", _libc.mount(b"none", place.encode(), b"tmpfs", *options))
    os.makedirs(folder, exist_ok=True)
    if len(kept) > 1 and not os.path.exists(source):
        os.makedirs(os.path.dirname(source), exist_ok=True)
        os.close(os.open(source, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
    for place in covered:
        _read_only(place)
    for place, tree in kept:
        moved = _libc.syscall(_NR_MOVE_MOUNT, tree, b"", _AT_FDCWD, place.encode(), _MOVE_MOUNT_F_EMPTY_PATH)
        _checked("move_mount", moved)
        os.close(tree)
    # Neither a setuid program nor the working folder of the caller leads back.
    _checked("prctl", _libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
    os.chdir(folder)


def _copied(path: str) -> int:
    """Return a descriptor of a mount of a folder or file that is nowhere yet."""
    place = os.open(path, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
    flags = _OPEN_TREE_CLONE | _OPEN_TREE_CLOEXEC | _AT_EMPTY_PATH
    tree = _checked("open_tree", _libc.syscall(_NR_OPEN_TREE, place, b"", flags))
    os.close(place)
    return tree


def _leave_terminal() -> None:
    """Make /dev/tty nobody's; signals of the terminal still arrive."""
    try:
        terminal = os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError:
        return
    fcntl.ioctl(terminal, termios.TIOCNOTTY)
    os.close(terminal)


def _namespaces() -> None:
    uid, gid = os.geteuid(), os.getegid()
    _checked("making a user namespace", _libc.unshare(_CLONE))
    for name, content in (("setgroups", "deny"), ("uid_map", f"{uid} {uid} 1"), ("gid_map", f"{gid} {gid} 1")):
        with open(f"/proc/self/{name}", "w", encoding="ascii") as file:
            file.write(content)


def _covered() -> list[str]:
    """Return the places in which a user's files, FIFOs and terminals lie; the outer ones first."""
    homes = (os.environ.get("HOME", ""), pwd.getpwuid(os.geteuid()).pw_dir)
    places = {os.path.realpath(place) for place in (*homes, *_SHARED) if place.startswith("/") and os.path.isdir(place)}
    places.discard("/")
    return sorted(place for place in places if not any(place.startswith(f"{outer}/") for outer in places))


def _read_only(place: str, flags: int = 0) -> None:
    wanted = (ctypes.c_uint64 * 4)(_MOUNT_ATTR_RDONLY, 0, 0, 0)
    size = ctypes.c_size_t(ctypes.sizeof(wanted))
    done = _libc.syscall(_NR_MOUNT_SETATTR, _AT_FDCWD, place.encode(), flags, wanted, size)
    _checked(f"making {place} read-only", done)


def _checked(what: str, returned: int) -> int:
    if returned < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
    return returned


def main() -> None:
    """Run the program of the arguments: FOLDER SOURCE -- PROGRAM ARGUMENT..."""
    folder, source, argv = os.path.realpath(sys.argv[1]), sys.argv[2], sys.argv[4:]
    program = os.path.realpath(shutil.which(argv[0]) or argv[0])
    try:
        confine(folder, source)
    except OSError as error:
        _fail(f"images cannot be unpacked safely here: {error.strerror}; {REMEDY}")
    # The files are the image's, readable by any user a container runs as; the folder above them is closed to others.
    os.umask(0o022)
    try:
        os.execv(program, argv)  # noqa: S606
    except OSError as error:
        _fail(f"{program}: {error.strerror}; install {argv[0]} outside of homes and /tmp")


def _fail(message: str) -> NoReturn:
    print(message, file=sys.stderr)
    sys.exit(STATUS)


if __name__ == "__main__":
    main()
