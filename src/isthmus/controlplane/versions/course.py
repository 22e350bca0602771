"""One start's way through versions: a copy of the data, each image in its order, and the way back of one that fails.

A version is a trial until it serves. Until then no snapshot of the data is published, and the copy is kept; a job that
is killed meanwhile leaves a move, which the next start goes on with. A trial that fails, or was tried too often, puts
the copy back and starts what ran before.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from isthmus.controlplane.data.claims import Source
from isthmus.controlplane.data.restorer import Restored
from isthmus.controlplane.errors import ControlPlaneError
from isthmus.controlplane.layout import Layout
from isthmus.controlplane.versions import copies, record
from isthmus.controlplane.versions.plan import UNRECORDED, Image, Plan, Versions, plan
from isthmus.controlplane.versions.record import Failure, Move, Record
from isthmus.controlplane.versions.trial import Limits, Trial

# A job that is killed so often by a new version, by its memory for example, goes back.
TRIES = 3

Serve = Callable[[Image, Trial | None], Awaitable[bool]]
"""Runs an image's programs until they are stopped; returns whether the job goes on."""

_log = logging.getLogger(__name__)


def recover(layout: Layout, places: Iterable[Path]) -> None:
    """Put the copy back where that was decided, or a move was tried too often; before anything reads the data.

    Args:
        layout: the cluster's files.
        places: where etcd's data may be on this node.

    Raises:
        ControlPlaneError: the record cannot be read.
        OSError: a disk fails.
    """
    known = record.read(layout)
    if known is None or known.move is None:
        return
    if known.failure is None and known.move.tries >= TRIES:
        known = replace(known, failure=_failure(known.move, f"it was not ready in {TRIES} starts"))
        record.write(layout, known)
    if known.failure is not None:
        for place in places:
            copies.put_back(place)
        record.write(layout, replace(known, move=None))


def writer(layout: Layout, images: Sequence[Image]) -> Image:
    """Return the image that reads snapshots of the data: the one that wrote them, if it is there.

    Raises:
        ControlPlaneError: the record cannot be read, or the site has no image.
    """
    known = record.read(layout) or Record(UNRECORDED)
    same = [image for image in images if image.versions == known.versions]
    return same[0] if same else plan(None, images).last


@dataclass(frozen=True, slots=True)
class Request:
    """What the user asked for.

    Attributes:
        kubernetes: a version or its beginning; empty for the newest.
        again: the time of a failure after which the user wants the same once more.
    """

    kubernetes: str = ""
    again: str = ""

    def failed(self, known: Record) -> str:
        """Return the image's file that is not tried again."""
        failure = known.failure
        return failure.file if failure and failure.time != self.again else ""

    def plan(self, known: Record | None, images: Sequence[Image]) -> Plan:
        """Return the plan of a start on the data.

        Raises:
            RefusedError: there is none.
        """
        return plan(known.newest if known else None, images, self.kubernetes, self.failed(known) if known else "")


@dataclass(frozen=True, slots=True)
class Course:
    """One start.

    Attributes:
        layout: the cluster's files.
        run: of this job, `job.restarts`.
        images: of the site.
        request: of the user.
        restored: where the data are.
        places: where they may have been on this node.
        serve: see there.
        limits: of a trial.
    """

    layout: Layout
    run: str
    images: Sequence[Image]
    request: Request
    restored: Restored
    places: Sequence[Path]
    serve: Serve
    limits: Limits = field(default_factory=Limits)

    async def go(self) -> None:
        """Serve by the wanted version until the job ends.

        Raises:
            ControlPlaneError: it cannot be reached, or failed, and nothing else may run.
            OSError: the home cannot be written.
        """
        known = self._known()
        made = self._plan(known)
        if made.warning:
            _log.warning("%s", made.warning)
        if known is None or not (made.is_move or known.move):
            await self._stay(made.last, self._relevant(known, made))
            return
        known = await self._begin(known, made)
        if known.move is None:
            await self._stay(self._present(known), known.failure)
            return
        await self._move(known, made)

    def _known(self) -> Record | None:
        """Return the record, as it holds for the data that are here."""
        if not (self.restored.folder / "member").is_dir():
            return None
        known = record.read(self.layout) or Record(UNRECORDED)
        if known.move is None:
            return known
        if self.restored.source is Source.SNAPSHOT:
            # None is published during a trial, so this one is of before it.
            return replace(known, move=None)
        if not copies.exists(self.restored.folder):
            # The data went to another place meanwhile, and the copy did not.
            return replace(known, versions=known.move.reached, move=None)
        return known

    def _plan(self, known: Record | None) -> Plan:
        if known and known.run == self.run and known.move is None and (same := self._same(known.versions)):
            # Killed and started again in the same job: nothing new begins.
            return Plan((same,))
        return self.request.plan(known, self.images)

    def _relevant(self, known: Record | None, made: Plan) -> Failure | None:
        """Return the failure that is why nothing else is tried."""
        if known is None or known.failure is None:
            return None
        without = plan(known.newest, self.images, self.request.kubernetes)
        return known.failure if without.steps != made.steps else None

    async def _stay(self, image: Image, failure: Failure | None) -> None:
        await asyncio.to_thread(self._arrive, image.versions, failure)
        await self.serve(image, None)

    async def _begin(self, known: Record, made: Plan) -> Record:
        """Copy the data, then record the move; a record without one says that the data cannot be copied."""
        to, file = made.last.versions, made.last.file.name
        move = replace(known.move, to=to, file=file, tries=known.move.tries + 1) if known.move else None
        if move is None:
            move = Move(to, file, known.versions)
            try:
                await asyncio.to_thread(copies.make, self.restored.folder)
            except OSError as error:
                why = f"the data could not be copied: {error}; make room there"
                _log.error("Kubernetes %s is not tried: %s", to.kubernetes, why)
                return replace(known, failure=replace(_failure(replace(move, reached=to), why), file=""))
        _log.info("Kubernetes %s, then %s", known.newest.kubernetes, ", ".join(each.kubernetes for each in made.steps))
        known = replace(known, run=self.run, move=move, failure=None)
        await asyncio.to_thread(record.write, self.layout, known)
        return known

    async def _move(self, known: Record, made: Plan) -> None:
        for image in made.steps:
            is_last = image is made.last
            tries = known.move.tries if known.move else 1
            known = replace(known, move=Move(made.last.versions, image.file.name, image.versions, tries))
            await asyncio.to_thread(record.write, self.layout, known)
            arrive = partial(self._arrive, image.versions) if is_last else _nothing
            trial = Trial(is_last, arrive, self.limits)
            goes_on = await self.serve(image, trial)
            if trial.failed:
                await self._back(known, trial.failed)
                return
            if not goes_on or not trial.over.is_set():
                return

    def _arrive(self, versions: Versions, failure: Failure | None = None) -> None:
        """Record that a version serves; from here on nothing goes back."""
        record.write(self.layout, Record(versions, self.run, failure=failure))
        for place in self.places:
            copies.remove(place)

    async def _back(self, known: Record, why: str) -> None:
        if known.move is not None:
            known = replace(known, failure=_failure(known.move, why))
            _log.error("%s; the data go back to %s", failed(known.failure), known.versions.kubernetes)
        await asyncio.to_thread(record.write, self.layout, known)
        await asyncio.to_thread(copies.put_back, self.restored.folder)
        known = replace(known, move=None)
        await asyncio.to_thread(record.write, self.layout, known)
        await self._stay(self._present(known), known.failure)

    def _present(self, known: Record) -> Image:
        """Return the image that ran the data last.

        Raises:
            ControlPlaneError: the site has it no more.
        """
        if found := self._same(known.versions):
            return found
        own = known.versions.kubernetes
        raise ControlPlaneError(
            f"{failed(known.failure)}; {own}, which ran before, is not here: an admin adds it to kubernetes_versions"
        )

    def _same(self, versions: Versions) -> Image | None:
        return next((image for image in self.images if image.versions == versions), None)


def failed(failure: Failure | None) -> str:
    """Return the words about a move that failed."""
    return f"Kubernetes {failure.kubernetes} could not be started ({failure.why})" if failure else ""


def _failure(move: Move, why: str) -> Failure:
    return Failure(move.reached.kubernetes, move.file, why, datetime.now(UTC).isoformat(timespec="seconds"))


def _nothing() -> None:
    pass
