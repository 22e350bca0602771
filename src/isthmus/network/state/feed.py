"""A sequence of snapshots of etcd; after a compaction everything is read again.

Something in etcd that cannot be read holds a feed up, and its readers keep what they had: nothing can be said of it,
least of all that it is gone. It goes on when that was put in order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from threading import Condition
from threading import Event as Flag

from isthmus.clients.etcd.store import CompactedError, Etcd, UnavailableError, Watch
from isthmus.network.state import snapshot as snapshots
from isthmus.network.state.keys import Keys, StoredError
from isthmus.network.state.snapshot import Snapshot

# Between two tries to read everything.
PAUSE_S = 1.0


class Feed:
    """Iterate over it in one thread, close it from any."""

    def __init__(
        self, etcd: Etcd, keys: Keys, at: Snapshot, load: Callable[[], Snapshot], log: Callable[[str], None]
    ) -> None:
        """See `Store.feed`."""
        self._etcd = etcd
        self._keys = keys
        self._at = at
        self._load = load
        self._log = log
        self.problem = ""
        self._closed = Flag()
        self._news = Condition()
        self._watch = self._new_watch()

    @property
    def connected(self) -> bool:
        """Whether etcd is being listened to now."""
        return self._watch.connected

    def __iter__(self) -> Iterator[Snapshot]:
        """Yield each new snapshot until closed; also one with nothing new, so that a reader knows etcd is there.

        Raises:
            EtcdError: going on is of no use.
            StoreError: the ranges differ from this daemon's.
        """
        while not self._closed.is_set():
            try:
                for changes in self._watch:
                    self._advance(snapshots.follow(self._keys, self._at, changes))
                    yield self._at
            except CompactedError as error:
                self._log(f"{error}; everything is read again")
                yield from self._reconnected()
            except StoredError as error:
                self._held_up(error)
                yield from self._reconnected()

    def wait(self, ready: Callable[[Snapshot], bool], timeout_s: float) -> Snapshot | None:
        """Return the first snapshot that is ready; None when there is none in time, or etcd is not listened to."""
        with self._news:
            found = self.connected and self._news.wait_for(lambda: ready(self._at), timeout_s)
            return self._at if found else None

    def close(self) -> None:
        """End the iteration, also one that waits in another thread."""
        self._closed.set()
        self._watch.close()

    def _advance(self, at: Snapshot) -> None:
        with self._news:
            self._at = at
            self._news.notify_all()

    def _reconnected(self) -> Iterator[Snapshot]:
        while not self._closed.is_set():
            try:
                self._advance(self._load())
            except UnavailableError as error:
                self._log(f"etcd cannot be read: {error}")
                self._closed.wait(PAUSE_S)
                continue
            except StoredError as error:
                self._held_up(error)
                continue
            self.problem = ""
            self._watch = self._new_watch()
            if self._closed.is_set():
                self._watch.close()
            yield self._at
            return

    def _held_up(self, error: StoredError) -> None:
        if self.problem != str(error):
            self._log(f"what this node knows stays as it is: {error}")
        self.problem = str(error)
        self._closed.wait(PAUSE_S)

    def _new_watch(self) -> Watch:
        return self._etcd.watch(self._keys.prefix, self._at.state.revision, self._log)
