"""The command `isthmus`: parses the command line and hands over to one tool.

A tool is a module with `register(subparsers)`; each layer adds its own to TOOLS.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from importlib.metadata import version

from isthmus.cli import completion
from isthmus.cli.commands import (
    bench,
    doctor,
    down,
    images,
    info,
    kubeconfig,
    logs,
    network,
    node,
    pull,
    status,
    up,
    workloads,
)
from isthmus.cli.errors import CommandError
from isthmus.support import private
from isthmus.support.private import PrivateError

TOOLS = (info, up, down, status, logs, kubeconfig, doctor, workloads, pull, images, network, node, bench, completion)
EPILOG = """examples:
  isthmus info                    which cluster is this, and which version of isthmus
  isthmus info --json | jq .id    the same for a script
  isthmus up                      start your own Kubernetes
  isthmus workloads add mpi       have MPIJobs in it
  isthmus pull debian:13          get a container image; prints the path of its file
  isthmus images list             what of them is there, and what may go
  isthmus network list            your jobs in your private network, and their addresses
  source <(isthmus completion bash)

exit status: 0 done, 1 it could not be done (standard error says why), 2 wrong usage"""


def parser() -> argparse.ArgumentParser:
    """Build the command line of all tools."""
    top = argparse.ArgumentParser(
        prog="isthmus",
        description="Slurm and Kubernetes on the same nodes: tools for the cluster's users.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    top.add_argument("--version", action="version", version=f"isthmus {version('isthmus')}")
    subparsers = top.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for tool in TOOLS:
        tool.register(subparsers)
    return top


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; the exit status is argparse's 2 for wrong usage, 1 (or a tool's own) where it failed, else 0."""
    options = parser().parse_args(arguments)
    try:
        with private.umask():
            options.run(options)
    except CommandError as error:
        return _fail(str(error), error.status)
    except PrivateError as error:
        return _fail(str(error))
    except BrokenPipeError:  # who read has enough; what is left has no reader either
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _fail("standard output was closed")
    except OSError as error:  # at any moment a home may turn full, read-only or stale
        return _fail(f"{error}; look at that file and its file system, then try again")
    return 0


def _fail(words: str, status: int = 1) -> int:
    print(f"isthmus: {words}", file=sys.stderr)
    return status
