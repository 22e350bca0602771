"""The command `isthmus`: parses the command line and calls one command.

A command is a module of its name with `register(subparsers)`. Only the one that was typed is imported: all of them
take 0.2 s.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterable, Sequence
from importlib import import_module
from typing import Any

from isthmus.cli.errors import CommandError
from isthmus.support import private
from isthmus.support.private import PrivateError

# In the order of the help.
COMMANDS = {
    **{
        name: f"isthmus.cli.commands.{name}"
        for name in (
            "info",
            "up",
            "down",
            "status",
            "logs",
            "usage",
            "kubeconfig",
            "doctor",
            "workloads",
            "pull",
            "images",
            "network",
            "shell",
            "node",
            "bench",
        )
    },
    "completion": "isthmus.cli.completion",
}
EPILOG = """examples:
  isthmus info                    which cluster is this, and which version of isthmus
  isthmus info --json | jq .id    the same for a script
  isthmus up                      start your own Kubernetes
  isthmus workloads add mpi       install the MPI Operator in it
  isthmus pull debian:13          pull a container image; prints the path of its file
  isthmus images list             your cached images
  isthmus usage --by pod          the CPU and memory your pods used
  isthmus shell 12                a shell in a job of yours
  isthmus network list            your jobs in your private network, and their addresses
  source <(isthmus completion bash)

exit status: 0 done, 1 it could not be done (standard error says why), 2 wrong usage"""


class _Version(argparse.Action):
    """What `action="version"` does; the version is read from the installed package only where it is asked for."""

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        from importlib.metadata import version

        print(f"isthmus {version('isthmus')}")
        parser.exit()


def parser(names: Iterable[str] = COMMANDS) -> argparse.ArgumentParser:
    """Build the command line of some commands, or of all."""
    top = argparse.ArgumentParser(
        prog="isthmus",
        description="Slurm and Kubernetes on the same nodes: tools for the cluster's users.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    top.add_argument("--version", action=_Version, nargs=0, help="show program's version number and exit")
    subparsers = top.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for name in names:
        import_module(COMMANDS[name]).register(subparsers)
    return top


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; the exit status is argparse's 2 for wrong usage, 1 (or a tool's own) where it failed, else 0."""
    words = sys.argv[1:] if arguments is None else arguments
    options = parser([name for name in words[:1] if name in COMMANDS] or COMMANDS).parse_args(words)
    try:
        with private.umask() as before:
            options.umask = before
            options.run(options)
    except CommandError as error:
        return _fail(str(error), error.status)
    except PrivateError as error:
        return _fail(str(error))
    except BrokenPipeError:  # the reader has closed the pipe, and needs no more output
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _fail("standard output was closed")
    except OSError as error:  # a home may become full, read-only or stale at any moment
        return _fail(f"{error}; look at that file and its file system, then try again")
    return 0


def _fail(words: str, status: int = 1) -> int:
    print(f"isthmus: {words}", file=sys.stderr)
    return status
