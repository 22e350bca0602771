"""The module `user_homes`: users' homes, key pairs and authorized_keys, where root touches nothing that is a user's.

Root makes a home that is missing, in a folder that is root's. All below it is done by a child process that is the
user: who makes a link there leads nobody else. Links are not followed at all, files are written whole; what
cannot be used is a warning that names the user, never the content, and the others are served. A child that hangs,
as in a FUSE mount of the user's, is ended. One task serves all users.
"""

from __future__ import annotations

import binascii
import errno
import json
import os
import pwd
import select
import shutil
import signal
import stat
import subprocess
from base64 import b64decode
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import pairwise
from secrets import token_hex
from typing import Any

from ansible.module_utils.basic import AnsibleModule

OPTIONS = {
    "name": {"type": "str", "required": True},
    "comment": {"type": "str", "required": True},
    "keys": {"type": "list", "elements": "str", "default": [], "no_log": False},
}
PRIVATE, PUBLIC, AUTHORIZED = "id_ed25519", "id_ed25519.pub", "authorized_keys"
KINDS = {
    *("ssh-ed25519", "ssh-rsa", "ecdsa-sha2-nistp256", "ecdsa-sha2-nistp384", "ecdsa-sha2-nistp521"),
    *("sk-ssh-ed25519@openssh.com", "sk-ecdsa-sha2-nistp256@openssh.com"),
}
SKELETON = "/etc/skel"
LARGEST_BYTES = 1 << 20
# A home that has not answered by then is left for the next run.
PATIENCE_S = 60.0
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


class UnusableError(Exception):
    """Something of the user's that cannot be used as it is: `what; remedy`."""


def key_of(line: str) -> str:
    """Return kind and data of a line's public key, without options and comment; empty for none."""
    words = line.split()
    if line.startswith("#"):
        return ""
    for kind, data in pairwise(words):
        with suppress(binascii.Error, ValueError):
            if kind in KINDS and b64decode(data, validate=True)[4:].startswith(kind.encode()):
                return f"{kind} {data}"
    return ""


def merged(present: str, wanted: list[str]) -> str:
    """Return authorized_keys(5) with the wanted lines; other lines stay, and so do options of the user's own."""
    lines = present.split("\n")[:-1] if present.endswith("\n") else [*present.split("\n")] if present else []
    for line in wanted:
        held = next((index for index, each in enumerate(lines) if key_of(each) == key_of(line)), None)
        if held is None:
            lines.append(line)
        elif line.split()[0] not in KINDS:
            lines[held] = line
    return "".join(f"{line}\n" for line in lines)


@contextmanager
def opened(name: str, flags: int, within: int | None = None) -> Iterator[int]:
    """Open something that is no link; what is in the home must be the user's own.

    Raises:
        UnusableError: it is a link, or another's.
    """
    try:
        descriptor = os.open(name, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=within)
    except OSError as error:
        if error.errno in {errno.ELOOP, errno.ENOTDIR, errno.ENXIO}:
            raise UnusableError("a link or of another kind, and is not touched; move it away") from error
        raise
    try:
        if within is not None and os.fstat(descriptor).st_uid != os.geteuid():
            raise UnusableError("not the user's own, and is not touched; change its owner or move it away")
        yield descriptor
    finally:
        os.close(descriptor)


def read(folder: int, name: str) -> str | None:
    """Return what a file holds; None where there is none.

    Raises:
        UnusableError: it is no file, or too large to be what it should be.
    """
    try:
        with opened(name, os.O_RDONLY, folder) as descriptor:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode) or os.fstat(descriptor).st_size > LARGEST_BYTES:
                raise UnusableError("no file of keys; move it away")
            with os.fdopen(os.dup(descriptor), "rb") as file:
                return file.read().decode(errors="surrogateescape")
    except FileNotFoundError:
        return None


def is_closed(folder: int, name: str) -> bool:
    """Return whether nobody else can read a file."""
    return not os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode & 0o077


def write(folder: int, name: str, content: str) -> None:
    """Write a file whole or not at all."""
    temporary = f".{name}.{token_hex(8)}"
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600, dir_fd=folder)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content.encode(errors="surrogateescape"))
            file.flush()
            os.fsync(descriptor)
        os.replace(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
    finally:
        with suppress(FileNotFoundError):
            os.unlink(temporary, dir_fd=folder)
    os.fsync(folder)


def keygen(*arguments: str) -> str:
    """Run ssh-keygen in the working folder.

    Raises:
        UnusableError: it failed.
    """
    command = ["ssh-keygen", "-q", *arguments]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)  # noqa: S603
    if done.returncode:
        raise UnusableError(f"nothing ssh-keygen can use (exit status {done.returncode}); look at it as the user")
    return done.stdout


def make_pair(folder: int, comment: str) -> None:
    """Make a key pair beside its place; the private key gets its name last, for where it is, nothing is made."""
    work = f".{PRIVATE}.{token_hex(8)}"
    os.mkdir(work, 0o700, dir_fd=folder)
    os.fchdir(folder)
    try:
        keygen("-t", "ed25519", "-N", "", "-C", comment, "-f", f"{work}/{PRIVATE}")
        for name in (PUBLIC, PRIVATE):
            with opened(f"{work}/{name}", os.O_RDONLY, folder) as descriptor:
                os.fsync(descriptor)
            os.replace(f"{work}/{name}", name, src_dir_fd=folder, dst_dir_fd=folder)
    finally:
        shutil.rmtree(work, dir_fd=folder, ignore_errors=True)
    os.fsync(folder)


def own_key(folder: int) -> str:
    """Return the user's public key.

    Raises:
        UnusableError: there is no such key, or none that can be read.
    """
    text = read(folder, PUBLIC)
    if text is None:
        raise UnusableError(f"not there; make it with: ssh-keygen -y -f ~/.ssh/{PRIVATE} > ~/.ssh/{PUBLIC}")
    line = text.strip()
    if "\n" in line or not key_of(line) or line.split()[0] not in KINDS:
        raise UnusableError("no public key, and is not read any further; move it away")
    return line


class Served:
    """What was done for one user, as reported to the parent."""

    def __init__(self, dry: bool) -> None:
        self.dry = dry
        self.changed = False
        self.problems: list[str] = []

    @contextmanager
    def at(self, what: str) -> Iterator[None]:
        """Note what cannot be used, and go on."""
        try:
            yield
        except UnusableError as error:
            self.problems.append(f"{what} is {error}")
        except OSError as error:
            self.problems.append(f"{what} is not usable ({error.strerror}); look at its owner, mode and file system")

    def change(self, action: Callable[[], None]) -> None:
        """Do something that a check run only reports."""
        self.changed = True
        if not self.dry:
            action()


def fill(home: int) -> None:
    """Give a new home what new homes have."""
    target = f"/proc/self/fd/{home}"
    for entry in os.scandir(SKELETON) if os.path.isdir(SKELETON) else ():
        if entry.is_dir(follow_symlinks=False):
            shutil.copytree(entry.path, f"{target}/{entry.name}", symlinks=True)
        else:
            shutil.copy2(entry.path, f"{target}/{entry.name}", follow_symlinks=False)


def serve(home: str, user: dict[str, Any], served: Served, *, is_new: bool) -> None:
    """Give a user their key pair and let their keys in; the caller is the user."""
    # The way to a home is the site's, and may have links; what is in the home is the user's.
    with served.at(home), opened(os.path.realpath(home), _FOLDER) as below:
        if is_new:
            fill(below)
        with served.at(f"{home}/.ssh"):
            if not exists(below, ".ssh"):
                served.change(lambda: os.mkdir(".ssh", 0o700, dir_fd=below))
            if served.dry and served.changed:
                return
            with opened(".ssh", _FOLDER, below) as folder:
                if os.fstat(folder).st_mode & 0o077:
                    served.change(lambda: os.fchmod(folder, 0o700))
                keep_keys(folder, f"{home}/.ssh", user, served)


def keep_keys(folder: int, shown: str, user: dict[str, Any], served: Served) -> None:
    """Make the pair where there is none, and keep authorized_keys."""
    given = [line.strip() for text in user["keys"] for line in text.splitlines()]
    wanted = [line for line in given if key_of(line)]
    if any(line and not line.startswith("#") and line not in wanted for line in given):
        served.problems.append("a line of ssh_keys in base_users is no public key and was left out; correct it")
    with served.at(f"{shown}/{PRIVATE}"):
        if not exists(folder, PRIVATE) and not exists(folder, PUBLIC):
            served.change(lambda: make_pair(folder, user["comment"]))
        elif exists(folder, PRIVATE, only=stat.S_ISLNK):
            raise UnusableError("a link, and is not followed; move it away")
    if exists(folder, PUBLIC) or not served.dry:
        with served.at(f"{shown}/{PUBLIC}"):
            wanted.append(own_key(folder))
    with served.at(f"{shown}/{AUTHORIZED}"):
        present = read(folder, AUTHORIZED)
        content = merged(present or "", list(dict.fromkeys(wanted)))
        if content != (present or "") or (present is not None and not is_closed(folder, AUTHORIZED)):
            served.change(lambda: write(folder, AUTHORIZED, content))


def exists(folder: int, name: str, only: Callable[[int], bool] = bool) -> bool:
    """Return whether there is anything of a name, or something of a kind; a link counts as itself."""
    try:
        return only(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)
    except FileNotFoundError:
        return False


def make_home(account: pwd.struct_passwd) -> None:
    """Make a home as root, where nobody else can put anything in its place.

    Raises:
        UnusableError: it cannot be made there.
    """
    above, name = os.path.split(account.pw_dir)
    remedy = f"make {account.pw_dir} yourself, {account.pw_name}'s and 0700, as on the file server"
    try:
        parent = os.open(above, _FOLDER)
    except OSError as error:
        raise UnusableError(f"not there, and {above} cannot be opened ({error.strerror}); {remedy}") from error
    try:
        output = os.fstat(parent)
        if output.st_uid != 0 or output.st_mode & 0o022:
            raise UnusableError(f"not there, and {above} is not root's alone to write; {remedy}")
        os.mkdir(name, 0o700, dir_fd=parent)
        os.chown(name, account.pw_uid, account.pw_gid, dir_fd=parent, follow_symlinks=False)
    except OSError as error:  # root of a client is nobody on a file server with root_squash
        with suppress(OSError):
            os.rmdir(name, dir_fd=parent)
        raise UnusableError(f"not there, and cannot be made ({error.strerror}); {remedy}") from error
    finally:
        os.close(parent)


def become(account: pwd.struct_passwd) -> None:
    """Be this user from here on, with nothing of root's left."""
    os.setsid()
    if os.geteuid() == 0:
        os.setgroups(os.getgrouplist(account.pw_name, account.pw_gid))
        os.setresgid(account.pw_gid, account.pw_gid, account.pw_gid)
        os.setresuid(account.pw_uid, account.pw_uid, account.pw_uid)
    os.umask(0o077)
    os.environ.update(HOME=account.pw_dir, LC_ALL="C")


def as_user(account: pwd.struct_passwd, work: Callable[[], dict[str, Any]], patience_s: float) -> dict[str, Any]:
    """Run work in a child process as the user; return its report.

    Raises:
        UnusableError: it reported nothing in time.
    """
    reads, writes = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            become(account)
            output = work()
        except Exception as error:  # whatever it is, the parent must hear of it
            output = {"changed": False, "problems": [f"{account.pw_dir} could not be served: {error!r}; report this"]}
        os.write(writes, json.dumps(output).encode())
        os._exit(0)
    os.close(writes)
    try:
        # All of it is written at once, and is less than a pipe holds.
        in_time, _, _ = select.select([reads], [], [], patience_s)
        answer = json.loads(os.read(reads, 1 << 16) or b"null") if in_time else None
    finally:
        os.close(reads)
        with suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)
        # One that the kernel cannot end is not waited for.
        os.waitpid(pid, 0 if in_time else os.WNOHANG)
    if not isinstance(answer, dict):
        raise UnusableError("one that did not answer; look as the user whether its file system hangs")
    return answer


def bring(
    user: dict[str, Any], account: pwd.struct_passwd, *, dry: bool, patience_s: float = PATIENCE_S
) -> tuple[bool, list[str]]:
    """Serve one user; return whether something changed, and what could not be used."""
    served, is_new = Served(dry), False
    with served.at(account.pw_dir):
        if not os.path.lexists(account.pw_dir):
            is_new = True
            served.change(lambda: make_home(account))
            if dry:
                return True, []

        def work() -> dict[str, Any]:
            serve(account.pw_dir, user, served, is_new=is_new)
            return {"changed": served.changed, "problems": served.problems}

        output = as_user(account, work, patience_s)
        return bool(output["changed"]), [str(problem) for problem in output["problems"]]
    return False, served.problems


def main() -> None:
    """Serve every user."""
    users = {"type": "list", "elements": "dict", "required": True, "options": OPTIONS}
    module = AnsibleModule(argument_spec={"users": users}, supports_check_mode=True)
    changed = []
    for user in module.params["users"]:
        try:
            account = pwd.getpwnam(user["name"])
        except KeyError:
            if module.check_mode:
                changed.append(user["name"])  # a check run has made no account
                continue
            module.fail_json(msg=f"user {user['name']} is unknown here; make the account first")
        did_change, problems = bring(user, account, dry=module.check_mode)
        if did_change:
            changed.append(user["name"])
        for problem in problems:
            module.warn(f"user {user['name']}: {problem}")
    module.exit_json(changed=bool(changed), users=changed)


if __name__ == "__main__":
    main()
