"""Sessions of users by SSH, from the login host to itself or to another node, as a user begins them."""

from __future__ import annotations

import shlex
import uuid
from collections.abc import Iterator
from contextlib import contextmanager

from testinfra.backend.base import CommandResult

from tests.support.clusters.cluster import Node
from tests.support.wait import wait

OPTIONS = "-q -o BatchMode=yes -o StrictHostKeyChecking=accept-new -o ExitOnForwardFailure=yes"


def ssh(login: Node, user: str, command: str, options: str = "", node: str = "") -> CommandResult:
    """Run a command in a session of its own; 255, which is ssh's own word for a lost connection, is reported as 254."""
    words = f"ssh {OPTIONS} {options} {node or login.name} {shlex.quote(command)}"
    return login.try_as(user, f"{words}; code=$?; test $code = 255 && exit 254; exit $code")


def inside(login: Node, user: str, command: str, options: str = "", node: str = "") -> str:
    """Run a command in a session of its own that must succeed; return what it prints."""
    done = ssh(login, user, command, options, node)
    assert done.rc == 0, f"{command}\n{done.stdout}{done.stderr}"
    return str(done.stdout).strip()


@contextmanager
def running(login: Node, user: str, command: str, environment: str = "") -> Iterator[str]:
    """Keep a program of a user's on the login host itself, outside of the login pod; yield the name of its unit.

    Args:
        login: the login host.
        user: whose.
        command: the program, with its arguments.
        environment: a variable that it gets, as NAME=VALUE.
    """
    unit = f"isthmus-test-{uuid.uuid4().hex[:8]}"
    home = login.output(f"getent passwd {user} | cut -d: -f6")
    more = f"--setenv={shlex.quote(environment)}" if environment else ""
    login.output(
        f"systemd-run --quiet --collect --unit={unit} --uid={user} --setenv=HOME={home} --working-directory={home}"
        f" {more} {command}"
    )
    try:
        yield unit
    finally:
        login.run(f"systemctl stop {unit}")


@contextmanager
def session(
    login: Node, user: str, command: str = "sleep 300", options: str = "", node: str = "", environment: str = ""
) -> Iterator[str]:
    """Keep a session meanwhile; yield the name of the unit that its client is."""
    client = f"ssh {OPTIONS} {options} {node or login.name} {shlex.quote(command)}"
    with running(login, user, client, environment) as unit:
        yield unit


def uid(login: Node, user: str) -> str:
    """Return a user's number."""
    return login.output(f"id -u {user}")


def is_pod_there(login: Node, user: str) -> bool:
    """Return whether a user has a login pod."""
    return login.run(f"systemctl is-active --quiet isthmus-login@{uid(login, user)}").rc == 0


def wait_for_pod(login: Node, user: str, *, there: bool) -> None:
    """Wait until a user has a login pod, or none."""
    wait(lambda: is_pod_there(login, user), lambda is_there: is_there is there, timeout_s=60)
