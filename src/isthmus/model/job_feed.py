"""Messages between isthmus-jobsd and kubelets: one JSON object a line, over TLS.

jobsd says hello with a nonce; the kubelet answers with a munge credential of it, which says whose it is. From then on
the kubelet says how old its view may be (`Demand`), and jobsd sends what has changed of its user's jobs and of nodes
(`Update`): the first time all of it. Rows are as squeue and sinfo write them, so they are read as their answers are.

With a demand a kubelet whose user lets it may say how many pods there are and how their starts went (`Figures`). It
says counts alone, of kinds that are known here: no word of a user's becomes a word of the site's.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

SCHEMA = 1
# What a credential is for: one that was made for something else opens nothing here.
PURPOSE = "isthmus-jobsd"
# Of a line that a kubelet sends: a credential has some 300 bytes.
ASKED_BYTES = 4096
# Of a line that jobsd sends: 10,000 jobs, and the nodes of a large cluster.
REPORT_BYTES = 16 << 20
# jobsd says something at least so often.
BEAT_S = 10.0
# A row's fields are cut: a comment that is longer is no pod's UID.
FIELD_CHARACTERS = 4096
_FIELDS = 16
# Of one account's pods; etcd of a user's cluster holds fewer.
PODS_MOST = 1_000_000
_NUMBER_MOST = 1 << 53

Row = tuple[str, ...]
Rows = Mapping[str, Row]


class FeedMessageError(ValueError):
    """A line that is no message of this protocol."""


@dataclass(frozen=True, slots=True)
class Delta:
    """How one set of rows becomes another.

    Attributes:
        rows: those that are new or other, by their key.
        gone: keys of those that are there no more.
        whole: the rows are all there are.
    """

    rows: Rows
    gone: tuple[str, ...] = ()
    whole: bool = False

    def __bool__(self) -> bool:
        """Whether it changes anything."""
        return bool(self.whole or self.rows or self.gone)


def difference(before: Rows | None, after: Rows) -> Delta:
    """Return how rows become others; `before` is None where nothing was sent yet."""
    if before is None:
        return Delta(dict(after), whole=True)
    changed = {key: row for key, row in after.items() if before.get(key) != row}
    return Delta(changed, tuple(key for key in before if key not in after))


def applied(before: Rows | None, delta: Delta) -> Rows:
    """Return what rows become.

    Raises:
        FeedMessageError: a difference to nothing.
    """
    if delta.whole:
        return dict(delta.rows)
    if before is None:
        raise FeedMessageError("jobsd sent a change before there was anything to change")
    gone = set(delta.gone)
    kept = {key: row for key, row in before.items() if key not in gone}
    return {**kept, **delta.rows}


@dataclass(frozen=True, slots=True)
class Hello:
    """jobsd's first line.

    Attributes:
        nonce: what the credential must say, see `payload`.
        uid: the only account that can decode the credential.
    """

    nonce: str
    uid: int

    @property
    def payload(self) -> str:
        """What the credential says."""
        return f"{PURPOSE} {SCHEMA} {self.nonce}"


class Phase(StrEnum):
    """Phases of pods, as Kubernetes has them."""

    PENDING = "Pending"
    RUNNING = "Running"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    UNKNOWN = "Unknown"


class Stage(StrEnum):
    """Stages of a pod's start, in their order."""

    SUBMIT = "submit"
    QUEUE = "queue"
    REPORT = "report"
    STATUS = "status"


@dataclass(frozen=True, slots=True)
class Starts:
    """Of a stage since the kubelet began.

    Attributes:
        count: pods that have come through it.
        sum_ms: how long that took in all.
    """

    count: int
    sum_ms: int


@dataclass(frozen=True, slots=True)
class Figures:
    """What a kubelet reports of itself.

    Attributes:
        pods: how many there are by phase; none of a phase that is left out.
        starts: of the stages; nothing came through one that is left out.
    """

    pods: Mapping[Phase, int] = field(default_factory=dict)
    starts: Mapping[Stage, Starts] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Demand:
    """How old a kubelet's view may be.

    Attributes:
        pause_s: so old it may become.
        ask: grows when an answer is wanted that was asked of Slurm after this line came.
        figures: what the kubelet reports besides; None where it reports nothing now.
    """

    pause_s: float
    ask: int = 0
    figures: Figures | None = None


@dataclass(frozen=True, slots=True)
class Update:
    """What jobsd says; without a change it is a sign of life.

    Attributes:
        asked: the highest `Demand.ask` that this view is younger than.
        age_s: since Slurm was asked for it.
        is_answered: whether Slurm answered the last time it was asked.
        jobs: by their id.
        nodes: by node and partition; None also where they are not sent.
    """

    asked: int
    age_s: float
    is_answered: bool = True
    jobs: Delta | None = None
    nodes: Delta | None = None


def write_hello(hello: Hello) -> bytes:
    """Return its line."""
    return _line({"schema": SCHEMA, "nonce": hello.nonce, "uid": hello.uid})


def read_hello(line: bytes) -> Hello:
    """Read its line.

    Raises:
        FeedMessageError: it is none, or another version's.
    """
    document = _read(line)
    if document.get("schema") != SCHEMA:
        raise FeedMessageError(f"jobsd speaks schema {str(document.get('schema'))[:20]}, this kubelet {SCHEMA}")
    nonce = document.get("nonce")
    if not (isinstance(nonce, str) and nonce.isalnum() and len(nonce) <= 128):
        raise FeedMessageError("jobsd's hello has no nonce")
    return Hello(nonce, _count(document, "uid"))


def write_credential(credential: str) -> bytes:
    """Return its line."""
    return _line({"credential": credential})


def read_credential(line: bytes) -> str:
    """Read its line.

    Raises:
        FeedMessageError: it is none.
    """
    credential = _read(line).get("credential")
    if not isinstance(credential, str):
        raise FeedMessageError("no credential")
    return credential


def write_demand(demand: Demand) -> bytes:
    """Return its line."""
    reported = {} if demand.figures is None else {"figures": _written(demand.figures)}
    return _line({"pause_ms": round(demand.pause_s * 1000), "ask": demand.ask, **reported})


def read_demand(line: bytes) -> Demand:
    """Read its line.

    Raises:
        FeedMessageError: it is none.
    """
    document = _read(line)
    figures = _read_figures(document["figures"]) if "figures" in document else None
    return Demand(_count(document, "pause_ms") / 1000, _count(document, "ask"), figures)


def write_update(update: Update) -> bytes:
    """Return its line."""
    document = {"asked": update.asked, "age_ms": round(update.age_s * 1000), "answered": update.is_answered}
    deltas = {"jobs": update.jobs, "nodes": update.nodes}
    return _line({**document, **{name: _delta(delta) for name, delta in deltas.items() if delta is not None}})


def read_update(line: bytes) -> Update:
    """Read its line.

    Raises:
        FeedMessageError: it is none, or jobsd sent an error, whose message this has.
    """
    document = _read(line)
    if "error" in document:
        raise FeedMessageError(f"jobsd refuses: {str(document['error'])[:200]}")
    if not isinstance(document.get("answered"), bool):
        raise FeedMessageError("an update says whether Slurm answered")
    jobs, nodes = (_read_delta(document[name]) if name in document else None for name in ("jobs", "nodes"))
    return Update(_count(document, "asked"), _count(document, "age_ms") / 1000, document["answered"], jobs, nodes)


def write_error(words: str) -> bytes:
    """Return the line of a refusal."""
    return _line({"error": words})


def _line(document: Mapping[str, Any]) -> bytes:
    # Text of users may have halves of characters: as escapes they are ASCII.
    return json.dumps(document, separators=(",", ":")).encode() + b"\n"


def _read(line: bytes) -> dict[str, Any]:
    try:
        document = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise FeedMessageError(f"no JSON: {line[:100]!r}") from error
    if not isinstance(document, dict):
        raise FeedMessageError(f"no object: {line[:100]!r}")
    return document


def _count(document: Mapping[str, Any], name: str) -> int:
    value: Any = document.get(name)
    if _is_number(value, _NUMBER_MOST):
        return int(value)
    raise FeedMessageError(f"no number {name}")


def _is_number(value: Any, most: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < most


def _written(figures: Figures) -> dict[str, Any]:
    starts = {stage: [each.count, each.sum_ms] for stage, each in figures.starts.items()}
    return {"pods": dict(figures.pods), "starts": starts}


def _read_figures(document: Any) -> Figures:
    """Read what is known here; what a newer kubelet says besides is left."""
    if not isinstance(document, dict):
        raise FeedMessageError("figures are no object")
    pods, starts = document.get("pods"), document.get("starts")
    if not (isinstance(pods, dict) and isinstance(starts, dict)):
        raise FeedMessageError("figures have pods and starts")
    known_pods = {phase: pods[phase] for phase in Phase if phase in pods}
    known_starts = {stage: starts[stage] for stage in Stage if stage in starts}
    if not all(_is_number(count, PODS_MOST) for count in known_pods.values()):
        raise FeedMessageError("pods are counts")
    if not all(map(_is_starts, known_starts.values())):
        raise FeedMessageError("starts are a count and milliseconds")
    return Figures(known_pods, {stage: Starts(*pair) for stage, pair in known_starts.items()})


def _is_starts(pair: Any) -> bool:
    return isinstance(pair, list) and len(pair) == 2 and all(_is_number(each, _NUMBER_MOST) for each in pair)


def _delta(delta: Delta) -> dict[str, Any]:
    return {"rows": {key: [*row] for key, row in delta.rows.items()}, "gone": [*delta.gone], "whole": delta.whole}


def _read_delta(document: Any) -> Delta:
    if not isinstance(document, dict):
        raise FeedMessageError("a change is no object")
    rows, gone, whole = document.get("rows"), document.get("gone"), document.get("whole")
    if not (isinstance(rows, dict) and isinstance(gone, list) and isinstance(whole, bool)):
        raise FeedMessageError("a change has rows, gone and whole")
    if not all(isinstance(row, list) and len(row) <= _FIELDS and all(map(_is_text, row)) for row in rows.values()):
        raise FeedMessageError("a row is a list of texts")
    if not all(map(_is_text, gone)):
        raise FeedMessageError("keys are texts")
    return Delta({key: tuple(row) for key, row in rows.items()}, tuple(gone), whole)


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and len(value) <= FIELD_CHARACTERS
