"""Executes a plan: the steps of a wave concurrently, wave after wave, and writes the record in between."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from itertools import groupby
from types import MappingProxyType
from typing import Any, TypeVar

from isthmus.clients.openstack.change import Changes
from isthmus.clients.openstack.connection import CloudError
from isthmus.cloud.ownership import Record
from isthmus.cloud.plan import Plan, waves
from isthmus.cloud.recorded import Recorded
from isthmus.model.cloud import UNMARKED, WAVES, Found, Kind, Made, Step, Verb, Wanted

_AT_ONCE = 10
_PORTS = 10
# Deletions that fail for a moment: of a volume that is being detached, of a port that a server just released.
_TRIES = 15
T = TypeVar("T")


class Work:
    """Creates and deletes resources.

    Args:
        changes: makes the calls.
        recorded: the record, loaded and saved before.
        progress: called with a line of progress.
        timeout_s: how long servers may take.
        look_s: between two polls of their states.
    """

    def __init__(
        self,
        changes: Changes,
        recorded: Recorded,
        progress: Callable[[str], None],
        timeout_s: float,
        look_s: float = 1.0,
    ) -> None:
        self._changes, self._recorded, self._progress = changes, recorded, progress
        self._timeout_s, self._look_s = timeout_s, look_s

    def make(self, plan: Plan) -> None:
        """Create what is missing, then delete images that no server uses.

        Raises:
            CloudError: a step failed; the results of the others are recorded.
        """
        ids = {(one.kind, one.name): one.id for one in plan.kept}
        ids |= {(step.kind, step.name): step.found.id for step in plan.steps if step.found}
        self._begin(plan)
        for steps in plan.waves():
            self._show(steps)
            self._clear([step.found for step in steps if step.verb is Verb.REPLACE and step.found])
            for made in self._wave(steps, ids):
                ids[made.kind, made.name] = made.id
            servers = [step.name for step in steps if step.kind is Kind.SERVER]
            if servers:
                self._until_active(servers)
        for step in plan.steps:
            if step.verb is Verb.DELETE and step.found:
                self._changes.delete(step.found)
                self._forget([step.found])

    def start(self, steps: Sequence[Step], ids: dict[tuple[Kind, str], str]) -> dict[str, str]:
        """Create servers concurrently, or replace them where a step does; do not wait until they run.

        Args:
            steps: of servers.
            ids: of their ports.

        Returns:
            name -> why the cloud refused it; the others are being created, and recorded.

        Raises:
            CloudError: a server that is to be replaced cannot be deleted.
        """
        self._clear([step.found for step in steps if step.verb is Verb.REPLACE and step.found])
        made, failed = at_once(lambda step: self._changes.apply(step, ids), steps)
        self._recorded.save(self._record().with_made(made))
        return {step.name: str(error).partition("; ")[0] for step, error in failed}

    def stop(self, servers: Sequence[Found]) -> dict[str, str]:
        """Delete servers without waiting for it; return name -> why the cloud refused it."""
        _, failed = at_once(self._delete, servers)
        refused = {found.name: str(error).partition("; ")[0] for found, error in failed}
        self._forget(one for one in servers if one.name not in refused)
        return refused

    def remove(self, steps: Sequence[Step]) -> None:
        """Delete resources, wave by wave.

        Raises:
            CloudError: some could not be deleted; the others are removed from the record.
        """
        servers = {step.name for step in steps if step.kind is Kind.SERVER}
        ports = {step.name: step for step in steps if step.kind is Kind.PORT and step.name in servers}
        # Without a floating IP it can go while servers do.
        routers = [step for step in steps if step.kind is Kind.ROUTER and servers]
        rest = [
            step for step in steps if step not in routers and (step.kind is not Kind.PORT or step.name not in ports)
        ]
        for wave in waves(rest, reversed(WAVES)):
            has_servers = any(step.kind is Kind.SERVER for step in wave)
            self._show([*wave, *([*ports.values(), *routers] if has_servers else ())])
            freed = {name: step.found for name, step in ports.items() if step.found} if has_servers else {}
            beside = [step.found for step in routers if step.found] if has_servers else []
            self._clear([step.found for step in wave if step.found], freed, beside)

    def _show(self, wave: Iterable[Step]) -> None:
        for kind, steps in groupby(wave, key=lambda step: step.kind):
            self._progress(f"{kind}: {', '.join(f'{step.verb} {step.name}' for step in steps)}")

    def _begin(self, plan: Plan) -> None:
        """Record what is there, and the names of resources that cannot bear a mark before they are created."""
        new = [step for step in plan.steps if step.verb is Verb.CREATE]
        names = {(step.kind, step.name) for step in new if step.kind in UNMARKED}
        record = self._record().with_made(Made(one.kind, one.name, one.id) for one in plan.kept)
        self._recorded.save(replace(record, begun=record.begun | names))

    def _wave(self, steps: Sequence[Step], ids: dict[tuple[Kind, str], str]) -> list[Made]:
        # Some ports take one call; all of a large cluster would take a call longer than a load balancer waits.
        ports = [step.wanted for step in steps if _is_new_port(step) and step.wanted]
        jobs: list[Step | list[Wanted]] = [step for step in steps if not _is_new_port(step)]
        jobs += [ports[begin : begin + _PORTS] for begin in range(0, len(ports), _PORTS)]

        def do(job: Step | list[Wanted]) -> object:
            return self._changes.ports(job, ids) if isinstance(job, list) else self._changes.apply(job, ids)

        made, failed = at_once(do, jobs)
        record = self._record().with_made(made)
        addresses = {one.name: one.address for one in made if one.address}
        self._recorded.save(replace(record, addresses={**dict(record.addresses), **addresses}))
        if failed:
            raise CloudError(_sum(failed), "run it again; it continues")
        return made

    def _until_active(self, names: Sequence[str]) -> None:
        """Wait until servers run.

        Raises:
            CloudError: some failed, or take too long.
        """
        failed, waiting = self.outcome(names)
        if waiting:
            raise CloudError(
                f"after {self._timeout_s} s not running: {', '.join(waiting)}",
                "run it again later, or raise provider_openstack_timeout_s",
            )
        if failed:
            shown = "; ".join(f"{name}: {fault}" for name, fault in sorted(failed.items()))
            raise CloudError(f"servers failed: {shown}", "the next run replaces them")

    def outcome(self, names: Sequence[str]) -> tuple[dict[str, str], list[str]]:
        """Wait until servers run or have failed, within the limit; return name -> fault, and those still building."""
        until = time.monotonic() + self._timeout_s
        # A list of names costs a cloud little, one of details much: it asks neutron about each server.
        while self._changes.listed(names, "BUILD") and time.monotonic() <= until:
            time.sleep(self._look_s)
        while True:
            there = self._changes.servers(names)
            waiting = [name for name in names if name not in there or there[name].status not in ("ACTIVE", "ERROR")]
            if not waiting or time.monotonic() > until:
                return {name: self._fault(one) for name, one in there.items() if one.status == "ERROR"}, waiting
            time.sleep(self._look_s)

    def _fault(self, server: Found) -> str:
        try:
            return self._changes.fault(server) or "the cloud gives no reason"
        except CloudError as error:
            return str(error).partition("; ")[0]

    def _clear(
        self, found: Sequence[Found], freed: Mapping[str, Found] = MappingProxyType({}), beside: Sequence[Found] = ()
    ) -> None:
        """Delete resources of a wave, and remove them from the record; servers are gone when this returns.

        Args:
            found: the resources.
            freed: name of a server -> its port, which is deleted as soon as the server is gone.
            beside: deleted while servers go, when the deletion of `found` was asked for.

        Raises:
            CloudError: some could not be deleted.
        """
        _, failed = at_once(self._delete, found)
        refused = [one for one, _ in failed]
        gone = [one for one in found if one not in refused]
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            more = [(one, pool.submit(self._delete, one)) for one in beside]
            names = self._going([one.name for one in gone if one.kind is Kind.SERVER])
            more += [(freed[name], pool.submit(self._delete, freed[name])) for name in names if name in freed]
            failed += _collected(more)[1]
        refused = [one for one, _ in failed]
        self._forget(one for one in [*gone, *(one for one, _ in more)] if one not in refused)
        if failed:
            raise CloudError(_sum(failed), "run it again; it continues")

    def _going(self, names: Iterable[str]) -> Iterator[str]:
        """Yield the names of servers as they go.

        Raises:
            CloudError: some take too long.
        """
        until, left = time.monotonic() + self._timeout_s, set(names)
        while left:
            there = self._changes.listed(left)
            yield from left - there
            left = there
            if left and time.monotonic() > until:
                raise CloudError(f"after {self._timeout_s} s still there: {', '.join(sorted(left))}", "run it again")
            # While many are on their way the cloud has better to do than to list them.
            time.sleep(self._look_s * (1 + len(left) / _AT_ONCE) if left else 0)

    def _delete(self, found: Found) -> None:
        for left in reversed(range(_TRIES)):
            try:
                self._changes.delete(found)
            except CloudError:
                if not left or found.kind not in (Kind.VOLUME, Kind.SECURITY_GROUP, Kind.NETWORK, Kind.SUBNET):
                    raise
                time.sleep(self._look_s)
            else:
                return

    def _forget(self, found: Iterable[Found]) -> None:
        self._recorded.save(self._record().without((one.kind, one.name) for one in found))

    def _record(self) -> Record:
        assert self._recorded.current is not None  # noqa: S101 (saved before)
        return self._recorded.current


def _is_new_port(step: Step) -> bool:
    return step.kind is Kind.PORT and step.verb is Verb.CREATE


def at_once(call: Callable[[T], object], items: Iterable[T]) -> tuple[list[Made], list[tuple[T, CloudError]]]:
    """Call a function for each item concurrently; return the results, and the items with errors."""
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        return _collected([(item, pool.submit(call, item)) for item in items])


def _collected(calls: Iterable[tuple[T, Future[Any]]]) -> tuple[list[Made], list[tuple[T, CloudError]]]:
    done: list[Made] = []
    failed: list[tuple[T, CloudError]] = []
    for item, future in calls:
        try:
            result = future.result()
        except CloudError as error:
            failed.append((item, error))
        else:
            done += result if isinstance(result, list) else [result] if isinstance(result, Made) else []
    return done, failed


def _sum(failed: Sequence[tuple[object, CloudError]]) -> str:
    more = f" (and {len(failed) - 1} more)" if len(failed) > 1 else ""
    return f"{str(failed[0][1]).partition(';')[0]}{more}"
