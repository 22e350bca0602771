"""Runs a program of somebody else's as root: a clean environment, a time limit, and as much output as can be meant.

With all that it has started it is ended when it takes too long or says too much: a plugin calls others, which hold its
output open. What it leaves running in another session is not waited for.
"""

from __future__ import annotations

import os
import selectors
import shlex
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO

from isthmus.clients.process import Finished, ProcessError

OUTPUT_MAX_BYTES = 1 << 20
# Plugins call iptables, nft and ip by name.
_PATH = "/usr/sbin:/usr/bin:/sbin:/bin"
_CHUNK = 65536


def run_bounded(
    argv: Sequence[str | Path],
    *,
    timeout_s: float,
    environment: Mapping[str, str],
    input_text: str,
    output_max_bytes: int = OUTPUT_MAX_BYTES,
) -> Finished:
    """Run a program to its end.

    Args:
        argv: the program and its arguments; no shell sees them.
        timeout_s: when it is ended.
        environment: all of it, besides PATH.
        input_text: what it reads on standard input.
        output_max_bytes: when it is ended: on standard output and error together.

    Raises:
        ProcessError: it did not end with status 0.
    """
    words = [str(word) for word in argv]
    command = shlex.join(words)
    with tempfile.TemporaryFile() as given:
        given.write(input_text.encode())
        given.seek(0)
        try:
            child = subprocess.Popen(  # noqa: S603
                words,
                env={"PATH": _PATH, **environment},
                cwd="/",
                stdin=given,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            raise ProcessError(command, None, str(error)) from error
    with child:
        try:
            status, texts = _awaited(child, command, time.monotonic() + timeout_s, output_max_bytes, timeout_s)
        except BaseException:
            _end(child)
            raise
    if status:
        raise ProcessError(command, status, f"ended with status {status}", *texts)
    return Finished(*texts)


def _awaited(
    child: subprocess.Popen[bytes], command: str, until_s: float, most: int, timeout_s: float
) -> tuple[int, tuple[str, str]]:
    streams: list[IO[bytes]] = [stream for stream in (child.stdout, child.stderr) if stream]
    said: dict[IO[bytes], list[bytes]] = {stream: [] for stream in streams}
    with selectors.DefaultSelector() as selector:
        for stream in streams:
            selector.register(stream, selectors.EVENT_READ)
        while selector.get_map():
            ready = selector.select(max(0.0, until_s - time.monotonic()))
            if not ready:
                raise ProcessError(command, None, f"stopped after {timeout_s:g} s")
            for key, _ in ready:
                stream = key.fileobj  # type: ignore[assignment]
                chunk = os.read(key.fd, _CHUNK)
                said[stream].append(chunk)
                most -= len(chunk)
                if not chunk:
                    selector.unregister(stream)
            if most < 0:
                raise ProcessError(command, None, "stopped, as it wrote more than a plugin has to say")
    try:
        status = child.wait(max(0.0, until_s - time.monotonic()))
    except subprocess.TimeoutExpired as error:
        raise ProcessError(command, None, f"stopped after {timeout_s:g} s") from error
    stdout, stderr = (b"".join(said[stream]).decode(errors="replace") for stream in streams)
    return status, (stdout, stderr)


def _end(child: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)
