"""The protocol of the daemon's socket: one JSON object a line, one line in reply, version 1.

Everybody may write to the socket, so a request is either exactly as agreed or refused: unknown fields, a field twice,
a number as text, a bound overstepped. Nothing is done before a request was read and its peer found to have the right;
both are decided here, without any I/O. The caller is the peer's uid by the kernel (SO_PEERCRED).

Of wrong requests, `malformed` are those whose form is wrong, `invalid` those of right form with a value that cannot
be, and `version` and `unknown_op` those of a daemon or client of another release. A request's bytes that are no UTF-8
are read as U+FFFD: job names are any bytes to Slurm, and all that matters but them is ASCII.

Rows of Services cost time to read, so the right to bring them is looked at before: `Permit` gets op and job as soon as
these are known, and a long request has them in front.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import fields
from ipaddress import IPv4Address, IPv4Network
from typing import Any

from isthmus.model.network import Driver, Transport, is_reservation
from isthmus.model.services import rows
from isthmus.network import bounds
from isthmus.network.api.fields import BoundError, FieldError, Fields, parse, shown
from isthmus.network.api.messages import (
    OPS,
    PREPARE_TIMEOUT_S,
    ErrorCode,
    Expose,
    JobGet,
    JobPrepare,
    JobRelease,
    JobServices,
    LeaseDrop,
    LeaseTake,
    List,
    LoginEnter,
    LoginPrepare,
    Metrics,
    NodeForget,
    Rekey,
    Request,
    Reserve,
    Status,
    Trace,
    TraceProtocol,
    Unreserve,
    Withdraw,
)
from isthmus.network.node.nodelist import NodeListError, fold, unfold
from isthmus.network.services import rows as service_rows

VERSION = 1
# Longest request, bytes with the newline.
LINE_MAX = 256 * 1024
# As long as a client may want to wait for a preparation.
PREPARE_TIMEOUT_MAX_S = 600.0
# What traces are between: an address, or a name of DNS.
_POINT_MAX = 253
# How a long request begins; as `encode_request` and the supervisor write it.
_LONG = re.compile(rb'\s*\{\s*"version"\s*:\s*1\s*,\s*"op"\s*:\s*"job_services"\s*,\s*"job"\s*:\s*(\d{1,10})\s*,')

# Raises RequestError where a peer may not ask for a job's Services; other requests are checked later.
Permit = Callable[[int], object]


class RequestError(Exception):
    """A request that is refused, and the code to refuse it with."""

    def __init__(self, code: ErrorCode, message: str) -> None:
        super().__init__(message)
        self.code = code


def long_job(beginning: bytes) -> int:
    """Return whose Services a request brings that is longer than others may be.

    Raises:
        RequestError: it does not begin as such a request.
    """
    found = _LONG.match(beginning)
    if found is None:
        why = "a request this long can only be job_services, with version, op and job in front; shorten it"
        raise RequestError(ErrorCode.MALFORMED, why)
    return int(found[1])


def parse_request(line: bytes, permit: Permit = lambda job: None) -> Request:
    """Read a request; the newline may be there or not.

    Args:
        line: the request.
        permit: judges whether the peer may bring a job's Services, before they are read.

    Raises:
        RequestError: it is none, with the code to refuse it with; nothing else is raised, whatever the bytes.
    """
    if len(line) > LINE_MAX:
        raise RequestError(ErrorCode.MALFORMED, f"a request is at most {LINE_MAX} bytes")
    try:
        body = Fields(parse(line.decode("utf-8", "replace")))
        _check_version(body)
        read = _operation(body)
        request = read(body) if read is not _job_services else _job_services(body, permit)
        body.end()
    except (BoundError, NodeListError) as error:
        raise RequestError(ErrorCode.INVALID, str(error)) from error
    except FieldError as error:
        raise RequestError(ErrorCode.MALFORMED, str(error)) from error
    return request


def authorise(request: Request, peer: int, owner: int | None = None) -> int | None:
    """Return for which uid a request acts; None: for all, which is root's right.

    Args:
        request: what is asked.
        peer: uid of who asks.
        owner: for JobGet and JobServices the job's uid, None where there is no such job: everybody may know that.

    Raises:
        RequestError: the peer may not ask this, or root does not say for whom.
    """
    match request:
        case JobPrepare() | JobRelease() if peer != 0:
            raise RequestError(ErrorCode.FORBIDDEN, "only root prepares and releases jobs; Slurm's plugin asks for it")
        case NodeForget() if peer != 0:
            raise RequestError(ErrorCode.FORBIDDEN, "only root takes a node out of the pod networks")
        case Rekey() if peer != 0:
            raise RequestError(ErrorCode.FORBIDDEN, "only root gives a node another key")
        case Metrics() if peer != 0:
            raise RequestError(ErrorCode.FORBIDDEN, "only root reads the daemon's metrics")
        case LoginPrepare() | LoginEnter() if peer != 0:
            raise RequestError(ErrorCode.FORBIDDEN, "only root opens sessions in login pods; log in by SSH")
        case JobPrepare():
            return request.uid
        case JobGet() | JobServices() if peer not in (0, owner) and owner is not None:
            raise RequestError(ErrorCode.FORBIDDEN, f"job {request.job} is not yours")
        case LeaseTake() | LeaseDrop() | Reserve() | Unreserve() | Expose() | Withdraw():
            return _own(request.uid, peer)
    return None if peer == 0 else peer


def encode_request(request: Request) -> bytes:
    """Write a request as a line; what has its default is left out."""
    body = {each.name: getattr(request, each.name) for each in fields(request)}
    defaults = {each.name: each.default for each in fields(request)}
    written = {name: value for name, value in body.items() if value != defaults[name]}
    if isinstance(request, JobPrepare):
        written["nodes"] = fold(request.nodes)
    if isinstance(request, JobServices):
        written["services"] = rows(request.services)
    op = next(name for name, kind in OPS.items() if kind is type(request))
    return _line({"version": VERSION, "op": op, **written})


def accept(values: Mapping[str, Any] | None = None) -> bytes:
    """Write the reply to a request that was done; addresses and networks are written as text."""
    return _line({"version": VERSION, "ok": True, **(values or {})})


def refuse(code: ErrorCode, message: str) -> bytes:
    """Write the reply to a request that was not done."""
    return _line({"version": VERSION, "ok": False, "error": {"code": code, "message": message}})


def parse_reply(line: bytes) -> dict[str, Any]:
    """Read a reply's values, without `version` and `ok`.

    Raises:
        RequestError: the reply is a refusal, or is none of this version (code `internal`).
    """
    try:
        body = Fields(parse(line.decode("utf-8", "replace")))
        _check_version(body)
        if body.take("ok", bool):
            return body.rest()
        error = Fields(body.take("error", dict))
        code, message = error.choice("code", ErrorCode), error.text("message", LINE_MAX)
    except (FieldError, RequestError) as wrong:
        raise RequestError(ErrorCode.INTERNAL, f"the daemon's reply makes no sense: {wrong}; see its log") from wrong
    raise RequestError(code, message)


def _check_version(body: Fields) -> None:
    version = body.take("version", int)
    if version != VERSION:
        raise RequestError(ErrorCode.VERSION, f"version {shown(version)} is not spoken here, only {VERSION}")


def _operation(body: Fields) -> Callable[[Fields], Request]:
    op = body.take("op", str)
    if op not in OPS:
        raise RequestError(ErrorCode.UNKNOWN_OP, f"unknown op {shown(op)}; one of {', '.join(OPS)}")
    return _READERS[OPS[op]]


def _own(uid: int | None, peer: int) -> int:
    if peer != 0 and uid not in (None, peer):
        raise RequestError(ErrorCode.FORBIDDEN, "a user asks for their own only; leave out uid")
    if peer == 0 and uid is None:
        raise RequestError(ErrorCode.INVALID, "root asks for others; give uid")
    return peer if uid is None else uid


def _job_prepare(body: Fields) -> JobPrepare:
    nodes = body.text("nodes", LINE_MAX)
    request = JobPrepare(
        # Above are the ids of login pods.
        body.integer("job", 1, bounds.LOGIN_FIRST - 1),
        body.integer("uid", 0, bounds.UID_MAX),
        body.text("user", bounds.USER_NAME_MAX, bounds.is_user_name),
        body.text("name", bounds.JOB_NAME_MAX),
        unfold(nodes),
        body.choice("driver", Driver),
        _reservation(body, "reservation") if body.has("reservation") else "",
        body.number("timeout_s", PREPARE_TIMEOUT_MAX_S) if body.has("timeout_s") else PREPARE_TIMEOUT_S,
        body.number("answer_s", PREPARE_TIMEOUT_MAX_S) if body.has("answer_s") else None,
    )
    if request.driver == Driver.NONE:
        raise BoundError("driver cannot be none; such a job has nothing to prepare")
    return request


def _job_services(body: Fields, permit: Permit = lambda job: None) -> JobServices:
    job = _job(body)
    permit(job)
    return JobServices(job, service_rows.read(body.take("services", list)))


def _trace(body: Fields) -> Trace:
    return Trace(
        body.text("source", _POINT_MAX, _is_point),
        body.text("target", _POINT_MAX, _is_point),
        body.choice("protocol", TraceProtocol) if body.has("protocol") else TraceProtocol.TCP,
        body.integer("port", 0, 65535) if body.has("port") else 0,
    )


def _is_point(text: str) -> bool:
    return text != "" and text.isascii() and text.isprintable() and " " not in text


def _job(body: Fields) -> int:
    return body.integer("job", 1, bounds.JOB_MAX)


def _uid_of(body: Fields) -> int:
    return body.integer("uid", 0, bounds.UID_MAX)


def _pid(body: Fields) -> int:
    return body.integer("pid", 2, bounds.PID_MAX)


def _uid(body: Fields) -> int | None:
    return body.integer("uid", 0, bounds.UID_MAX) if body.has("uid") else None


def _reservation(body: Fields, name: str) -> str:
    return body.text(name, bounds.RESERVATION_MAX, is_reservation)


def _exposed(body: Fields) -> tuple[str, int, Transport, int | None]:
    protocol = body.choice("protocol", Transport) if body.has("protocol") else Transport.TCP
    return _reservation(body, "name"), body.integer("port", 1, bounds.PORT_MAX), protocol, _uid(body)


def _line(values: Mapping[str, Any]) -> bytes:
    return json.dumps(values, default=_written, allow_nan=False, separators=(",", ":")).encode("ascii") + b"\n"


def _written(value: object) -> str:
    if isinstance(value, IPv4Address | IPv4Network):
        return str(value)
    raise TypeError(f"a reply cannot hold {value!r}")


_READERS: Mapping[type[Request], Callable[[Fields], Request]] = {
    JobPrepare: _job_prepare,
    JobGet: lambda body: JobGet(_job(body)),
    JobRelease: lambda body: JobRelease(_job(body)),
    JobServices: _job_services,
    LeaseTake: lambda body: LeaseTake(_uid(body)),
    LeaseDrop: lambda body: LeaseDrop(_uid(body)),
    Reserve: lambda body: Reserve(_reservation(body, "name"), _uid(body)),
    Unreserve: lambda body: Unreserve(_reservation(body, "name"), _uid(body)),
    Expose: lambda body: Expose(*_exposed(body)),
    Withdraw: lambda body: Withdraw(*_exposed(body)),
    Status: lambda body: Status(),
    List: lambda body: List(),
    Trace: _trace,
    Metrics: lambda body: Metrics(),
    NodeForget: lambda body: NodeForget(body.text("node", bounds.NODE_NAME_MAX, bounds.is_node_name)),
    Rekey: lambda body: Rekey(),
    LoginPrepare: lambda body: LoginPrepare(_uid_of(body), _pid(body)),
    LoginEnter: lambda body: LoginEnter(_uid_of(body), _pid(body)),
}
