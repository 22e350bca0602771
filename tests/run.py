"""Runs the stages of `make test` and says how long each took.

    python -m tests.run lint unit testbed+integration,attack

A stage is a target of the Makefile. Words follow each other. Within a word, lanes joined by `+` run at once, and the
stages of a lane, joined by commas, follow each other. What the first lane prints is seen at once; what another prints
comes in one piece when its stage and the present one of the first lane have ended. When a stage fails, no other
begins, and those that run come to their end: a deployment or a molecule cut short would leave nodes behind.

results/shares.json has the times; tests/shares.py is about what they mean.
"""

from __future__ import annotations

import queue
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.bench import results
from tests.shares import Share, budget, over

Lane = Sequence[str]


def lanes(word: str) -> list[Lane]:
    """Read a word of the command line."""
    found: list[Lane] = [part.split(",") for part in word.split("+")]
    if not all(stage for lane in found for stage in lane):
        raise SystemExit(f"{word!r} has a stage without a name; write stage, stage,stage or stage+stage")
    return found


@dataclass
class Run:
    """One run.

    Attributes:
        shares: of the stages that have ended, in that order.
        printed: by ended stages of other lanes than the first, and not shown yet.
        failed: set when a stage has.
    """

    begun_s: float = field(default_factory=time.monotonic)
    shares: list[Share] = field(default_factory=list)
    printed: queue.SimpleQueue[bytes] = field(default_factory=queue.SimpleQueue)
    failed: threading.Event = field(default_factory=threading.Event)

    def word(self, first: Lane, *others: Lane) -> None:
        """Run lanes at once."""
        threads = [threading.Thread(target=self._lane, args=(lane, False)) for lane in others]
        for thread in threads:
            thread.start()
        self._lane(first, True)
        for thread in threads:
            while thread.is_alive():
                thread.join(timeout=1)
                self._show()
        self._show()

    def _lane(self, lane: Lane, seen: bool) -> None:
        for stage in lane:
            if not self.failed.is_set():
                self._stage(stage, seen)
            if seen:
                self._show()

    def _stage(self, stage: str, seen: bool) -> None:
        begun_s, before = self._now_s(), _cores()
        title = f"\n=== make {stage}\n".encode()
        if seen:
            _write(title)
        command = ("make", "--no-print-directory", stage)
        pipe = None if seen else subprocess.PIPE
        done = subprocess.run(command, stdout=pipe, stderr=None if seen else subprocess.STDOUT, check=False)
        share = Share(stage, begun_s, self._now_s(), done.returncode, busy_percent(before, _cores()))
        self.shares.append(share)
        if done.returncode:
            self.failed.set()
        end = f"--- {share}\n".encode()
        if seen:
            _write(end)
        else:
            self.printed.put(title + done.stdout + end)

    def _show(self) -> None:
        while not self.printed.empty():
            _write(self.printed.get())

    def _now_s(self) -> int:
        return round(time.monotonic() - self.begun_s)


def busy_percent(before: Sequence[int], after: Sequence[int]) -> int:
    """Return how much of the cores' time was used between two looks at /proc/stat: user, nice, system, idle, wait."""
    spent = [late - early for early, late in zip(before, after, strict=True)]
    idle = spent[3] + spent[4]
    return round(100 * (1 - idle / max(1, sum(spent))))


def _cores() -> list[int]:
    """Return the first numbers of /proc/stat, of all cores together; those of guests are in user."""
    return [int(word) for word in Path("/proc/stat").read_text().split()[1:9]]


def _write(text: bytes) -> None:
    sys.stdout.buffer.write(text)
    sys.stdout.flush()


def main(words: Sequence[str]) -> int:
    """Run words of stages; return the exit status of the first stage that failed."""
    run = Run()
    for lanes_of_word in [lanes(word) for word in words]:
        if not run.failed.is_set():
            run.word(*lanes_of_word)
    results.save("shares", seconds=run.shares[-1].ended_s, stages=[share.record() for share in run.shares])
    print("", *run.shares, *over(run.shares, budget()), sep="\n")
    return next((share.status for share in run.shares if share.status), 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
