"""The module `registry_credentials`: a registry's passwords in its users' homes, whatever else they keep there.

Root would follow a link that a user made in their home. So each file is looked at and written by a child that is
the user; one that hangs, as in a FUSE mount of the user's, is ended. All users are served in one go, for a site has
hundreds.
"""

from __future__ import annotations

import json
import os
import pwd
import select
import signal
import stat
from base64 import b64encode
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from tempfile import mkstemp

from ansible.module_utils.basic import AnsibleModule

FILE = ".apptainer/docker-config.json"
LARGEST = 1 << 20
# A home that has not answered by then is left for the next run.
PATIENCE_S = 60.0


class UnusableError(Exception):
    """The user's file is none that can be kept."""


def become(account: pwd.struct_passwd) -> None:
    """Be this user from here on, with nothing of root's left."""
    os.setsid()
    if os.geteuid() == 0:
        os.setgroups(os.getgrouplist(account.pw_name, account.pw_gid))
        os.setresgid(account.pw_gid, account.pw_gid, account.pw_gid)
        os.setresuid(account.pw_uid, account.pw_uid, account.pw_uid)


def as_user(account: pwd.struct_passwd, work: Callable[[], bool], patience_s: float = PATIENCE_S) -> bool:
    """Run work in a child process as the user; return its result.

    Raises:
        UnusableError: it could not, or did not in time.
    """
    reads, writes = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            become(account)
            answer = {"changed": work()}
        except Exception as error:  # whatever it is, the parent must hear of it
            answer = {"problem": str(error)}
        os.write(writes, json.dumps(answer).encode())
        os._exit(0)
    os.close(writes)
    try:
        # All of it is written at once, and is less than a pipe holds.
        in_time, _, _ = select.select([reads], [], [], patience_s)
        answer = json.loads(os.read(reads, 1 << 16) or b"{}") if in_time else {}
    finally:
        os.close(reads)
        with suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)
        # One that the kernel cannot end is not waited for.
        os.waitpid(pid, 0 if in_time else os.WNOHANG)
    if "changed" not in answer:
        raise UnusableError(answer.get("problem", "its file system does not answer"))
    return bool(answer["changed"])


def merged(text: str, address: str, credential: str) -> str:
    """Return a containers-auth.json(5) with the registry's credential; other entries stay.

    Raises:
        UnusableError: the text is no such file.
    """
    try:
        content = json.loads(text or "{}")
        auths = content.setdefault("auths", {})
        auths[address] = {"auth": b64encode(credential.encode()).decode()}
    except (ValueError, AttributeError, TypeError) as error:
        raise UnusableError("it is no containers-auth.json") from error
    return json.dumps(content, indent=2) + "\n"


def read(path: Path) -> str:
    """Return what a file holds, "" where there is none; a pipe would keep the reader waiting."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except FileNotFoundError:
        return ""
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise UnusableError("it is no file")
        return file.read(LARGEST).decode(errors="replace")


def write(path: Path, content: str) -> None:
    """Write a file of the user's alone, whole or not at all."""
    path.parent.mkdir(mode=0o700, exist_ok=True)
    descriptor, temporary = mkstemp(dir=path.parent, prefix=f".{path.name}.")  # 0600
    try:
        with os.fdopen(descriptor, "w") as file:
            file.write(content)
            file.flush()
            os.fsync(descriptor)
        Path(temporary).replace(path)
    finally:
        Path(temporary).unlink(missing_ok=True)


def closed(path: Path) -> bool:
    """Return whether nobody else can read the file."""
    return path.exists() and not (path.stat().st_mode & 0o077 or path.parent.stat().st_mode & 0o077)


def keep(path: Path, address: str, credential: str, *, dry: bool) -> bool:
    """Let a user's file hold the credential; return whether it had to change."""
    present = read(path)
    wanted = merged(present, address, credential)
    if json.loads(wanted) == json.loads(present or "{}") and closed(path):
        return False
    if not dry:
        write(path, wanted)
        path.parent.chmod(0o700)
    return True


def accounts(module: AnsibleModule) -> dict[str, pwd.struct_passwd]:
    """Return the users that have an account; one without is refused, unless a check run would have made it."""
    found = {account.pw_name: account for account in pwd.getpwall()}
    for name in module.params["passwords"]:
        try:
            found[name] = pwd.getpwnam(name)  # also users that a directory service does not list
        except KeyError:
            if not module.check_mode:
                module.fail_json(msg=f"user {name} is unknown here; make the account, or take it out of registry_users")
    return {name: found[name] for name in module.params["passwords"] if name in found}


def main() -> None:
    """Serve every user; a file that cannot be kept is reported and left alone."""
    options = {
        "address": {"type": "str", "required": True},
        "passwords": {"type": "dict", "required": True, "no_log": True},
    }
    module = AnsibleModule(argument_spec=options, supports_check_mode=True)
    changed = []
    for name, account in accounts(module).items():
        path = Path(account.pw_dir, FILE)
        credential = f"{name}:{module.params['passwords'][name]}"
        try:
            if as_user(account, partial(keep, path, module.params["address"], credential, dry=module.check_mode)):
                changed.append(name)
        except UnusableError as error:
            module.warn(f"{path} was left as it is ({error}); {name} must move it away before the next run")
    module.exit_json(changed=bool(changed), users=changed)


if __name__ == "__main__":
    main()
