"""Access to the user's home, which may be full, slow or unreachable at any moment without affecting the pod.

Accesses run in a separate thread, one after the other, and return their result to the event loop: a file
server that takes ten seconds for an fsync, or hangs, delays neither probes nor the end of the pod. The thread is a
daemon, so a hanging one does not prevent the exit.

A process forked meanwhile has one thread, and may join user namespaces. What runs here is system calls and little
else, so that no lock which such a fork might need is held by it. The thread has a table of descriptors of its own
(unshare(2), CLONE_FILES): a fork would inherit an open log, and wait for the file server when it closes it (close(2)
flushes). So whatever is opened here is closed here, and nowhere else.
"""

from __future__ import annotations

import asyncio
import os
import queue
import signal
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from isthmus.supervisor.runtime import linux

Work = Callable[[], Any]
# Gets the error, or None.
Then = Callable[[OSError | None], None]
Run = Callable[[Work, Then], None]


class Home:
    """A queue with one worker thread; independent accesses use separate instances.

    Args:
        name: of the thread.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._loop = asyncio.get_running_loop()
        self._queue: queue.SimpleQueue[tuple[Work, asyncio.Future[Any]]] = queue.SimpleQueue()
        self._done: queue.SimpleQueue[tuple[asyncio.Future[Any], Any, OSError | None]] = queue.SimpleQueue()
        self._wakes = -1
        self._left = 0
        self._idle = asyncio.Event()
        self._idle.set()

    def run(self, work: Work, then: Then) -> None:
        """Queue work; `then` is called in the loop."""
        self._submit(work).add_done_callback(lambda done: then(_error(done)))

    async def call(self, work: Work, timeout_s: float) -> Any:
        """Run work and return its result; descriptors that it opens belong to the thread.

        Raises:
            OSError: it failed, or took too long.
        """
        try:
            return await asyncio.wait_for(asyncio.shield(self._submit(work)), timeout_s)
        except TimeoutError:
            raise OSError(f"the home does not answer in {timeout_s:g} s") from None

    async def flushed(self, timeout_s: float) -> None:
        """Wait until the queue is empty, or the time is over."""
        with suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self._idle.wait(), timeout_s)

    def _submit(self, work: Work) -> asyncio.Future[Any]:
        if self._wakes < 0:
            self._begin()
        future: asyncio.Future[Any] = self._loop.create_future()
        # Nobody may wait any more; the error is still consumed.
        future.add_done_callback(self._finished)
        self._left += 1
        self._idle.clear()
        self._queue.put((work, future))
        return future

    def _begin(self) -> None:
        heard, self._wakes = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        self._loop.add_reader(heard, self._hear, heard)
        begun = threading.Event()
        threading.Thread(target=self._serve, args=(begun,), name=self._name, daemon=True).start()
        # No fork, and nothing that is opened, falls between.
        begun.wait()

    def _hear(self, heard: int) -> None:
        with suppress(BlockingIOError):
            os.read(heard, 4096)
        with suppress(queue.Empty):
            while True:
                future, result, error = self._done.get_nowait()
                _resolve(future, result, error)

    def _finished(self, done: asyncio.Future[Any]) -> None:
        if not done.cancelled():
            done.exception()
        self._left -= 1
        if not self._left:
            # What the outcome leads to may be more work.
            self._loop.call_soon(self._rest)

    def _rest(self) -> None:
        if not self._left:
            self._idle.set()

    def _serve(self, begun: threading.Event) -> None:
        # The handler of a signal writes to a descriptor of the process (signal.set_wakeup_fd), which is not one here.
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        linux.own_descriptors(self._wakes)
        begun.set()
        while True:
            work, future = self._queue.get()
            result, error = None, None
            try:
                result = work()
            except OSError as problem:
                error = problem
            except Exception as problem:
                error = OSError(f"{type(problem).__name__}: {problem}")
            self._done.put((future, result, error))
            # A full pipe wakes as well.
            with suppress(BlockingIOError):
                os.write(self._wakes, b"x")


def _resolve(future: asyncio.Future[Any], result: Any, error: OSError | None) -> None:
    if future.done():
        return
    if error is None:
        future.set_result(result)
    else:
        future.set_exception(error)


def _error(done: asyncio.Future[Any]) -> OSError | None:
    if done.cancelled():
        return OSError("cancelled")
    found = done.exception()
    return found if found is None or isinstance(found, OSError) else OSError(str(found))


def why(error: OSError) -> str:
    """Return an error's words without its path."""
    return error.strerror or str(error)
