"""Join tokens: what an administrator hands out, and what the controller stores of it.

A token is `isthmus1.ID.SECRET.PIN`. The controller keeps SECRET's hash alone: 256 random bits need no salt and no slow
hash. PIN is the hash of the public key of the cluster's CA: with it the node verifies the service before it sends
SECRET.
"""

from __future__ import annotations

import hmac
import re
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from hashlib import sha256
from typing import Any

from isthmus.node.errors import RefusedError

_TOKEN = re.compile(r"isthmus1\.(?P<id>[0-9a-f]{12})\.(?P<secret>[A-Za-z0-9_-]{43})\.(?P<pin>[0-9a-f]{64})")
_DURATION = re.compile(r"(?P<count>[1-9][0-9]{0,5})(?P<unit>[mhd])")
_SECONDS = {"m": 60, "h": 3600, "d": 86400}
# Long enough for a rack that is delivered next week.
LONGEST_S = 30 * 86400


@dataclass(frozen=True, slots=True)
class Token:
    """What a node is given; its text is a secret."""

    id: str
    secret: str
    pin: str

    def __str__(self) -> str:
        """The text that a node is given."""
        return f"isthmus1.{self.id}.{self.secret}.{self.pin}"


@dataclass(frozen=True, slots=True)
class Record:
    """What the controller keeps of a token.

    Attributes:
        id: the part of it that may be shown.
        hash: of its secret.
        kind: class whose nodes may use it; "" where `names` decide.
        names: nodes that may use it.
        uses: how many nodes may, at most.
        expires: seconds since the epoch.
        replace: whether a node may take the place of one that has joined under its name.
    """

    id: str
    hash: str
    kind: str
    names: tuple[str, ...]
    uses: int
    expires: float
    replace: bool

    def allows(self, name: str, kind: str) -> bool:
        """Return whether a node of this name and class may use it."""
        return name in self.names or (bool(self.kind) and self.kind == kind)


def create(
    pin: str, *, kind: str = "", names: Sequence[str] = (), uses: int, expires: float, replace: bool = False
) -> tuple[Token, Record]:
    """Make a token and what is kept of it."""
    token = Token(secrets.token_hex(6), secrets.token_urlsafe(32), pin)
    return token, Record(token.id, digest(token.secret), kind, tuple(names), uses, expires, replace)


def parse(text: str) -> Token:
    """Read what a node was given.

    Raises:
        RefusedError: it is no token; its text is not repeated.
    """
    found = _TOKEN.fullmatch(text.strip())
    if not found:
        raise RefusedError("this is no token; copy the whole line that `isthmus node token create` printed")
    return Token(found["id"], found["secret"], found["pin"])


def digest(secret: str) -> str:
    """What is kept of a secret."""
    return sha256(secret.encode()).hexdigest()


def fits(record: Record, secret: str) -> bool:
    """Return whether a secret is that of a token, in the same time whether it is or not."""
    return hmac.compare_digest(record.hash, digest(secret))


def duration_s(text: str) -> int:
    """Read `30m`, `1h` or `7d`.

    Raises:
        ValueError: it is none, or longer than a token may last.
    """
    found = _DURATION.fullmatch(text)
    seconds = int(found["count"]) * _SECONDS[found["unit"]] if found else 0
    if not 0 < seconds <= LONGEST_S:
        raise ValueError(f"{text!r} is no time from 1m to {LONGEST_S // 86400}d; write e.g. 30m, 1h or 7d")
    return seconds


def written(record: Record) -> dict[str, Any]:
    """A record as it is kept."""
    return {"schema": 1, **asdict(record)}


def read(kept: Mapping[str, Any]) -> Record:
    """A record as it was kept.

    Raises:
        KeyError, TypeError, ValueError: it was not written by `written`.
    """
    if kept["schema"] != 1:
        raise ValueError(f"schema {kept['schema']}")
    return Record(
        str(kept["id"]),
        str(kept["hash"]),
        str(kept["kind"]),
        tuple(map(str, kept["names"])),
        int(kept["uses"]),
        float(kept["expires"]),
        bool(kept["replace"]),
    )
