"""Jobs whose networks are being created, and jobs that ended meanwhile.

A prolog does not wait for a slow preparation, so an epilog may come before its end; what is then made is nobody's.
"""

from __future__ import annotations

from threading import Condition


class InProgress:
    """May be used by several threads."""

    def __init__(self) -> None:
        # Job -> whether it was released since its preparation began.
        self._jobs: dict[int, bool] = {}
        self._changed = Condition()

    def has(self, job: int) -> bool:
        """Return whether a job's network is being made."""
        return job in self._jobs

    def begin(self, job: int, timeout_s: float) -> bool:
        """Begin a preparation when the one before, of a stay that was requeued, has ended; False when it does not."""
        with self._changed:
            if not self._changed.wait_for(lambda: job not in self._jobs, timeout_s):
                return False
            self._jobs[job] = False
            return True

    def release(self, job: int) -> None:
        """Note that a job has ended."""
        with self._changed:
            if job in self._jobs:
                self._jobs[job] = True

    def end(self, job: int) -> bool:
        """End a preparation; of a job that was released meanwhile it goes on: undo what was made, and ask again.

        Returns:
            Whether it has ended. The stay of a requeued job that comes next begins only then.
        """
        with self._changed:
            if self._jobs[job]:
                self._jobs[job] = False
                return False
            del self._jobs[job]
            self._changed.notify_all()
            return True
