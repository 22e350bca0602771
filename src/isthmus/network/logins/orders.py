"""What isthmus-networkd and the program that follows Services (`isthmus.cli.login_followers`) say to one another.

A message on a socket (SOCK_SEQPACKET), which root alone may open, is one JSON object:

{"op": "follow", "uid": 2001}     with a descriptor of the pod's network namespace; who follows already is ended
{"op": "unfollow", "uid": 2001}   with none; nobody who follows is success

and has one in reply, once it is done: {} or {"error": "why"}. What is not exactly so is refused, and changes nothing.
All that follow end with the connection.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from isthmus.network.api.fields import FieldError, Fields, parse
from isthmus.network.bounds import UID_MAX

SOCKET = Path("/run/isthmus/login-followers.sock")
MESSAGE_BYTES = 512


class Operation(StrEnum):
    """What is asked for."""

    FOLLOW = "follow"
    UNFOLLOW = "unfollow"


@dataclass(frozen=True, slots=True)
class Order:
    """What is asked for, and for whom."""

    operation: Operation
    uid: int

    def encode(self) -> bytes:
        """Return the message."""
        return json.dumps({"op": self.operation, "uid": self.uid}).encode("ascii")


def read_order(message: bytes, descriptors: int) -> Order:
    """Read a message that came with a number of descriptors.

    Raises:
        FieldError: it is not as agreed.
    """
    try:
        fields = Fields(parse(message.decode("ascii")))
    except UnicodeDecodeError as error:
        raise FieldError("not ASCII") from error
    order = Order(fields.choice("op", Operation), fields.integer("uid", 1, UID_MAX))
    fields.end()
    if descriptors != (1 if order.operation is Operation.FOLLOW else 0):
        raise FieldError(f"{order.operation} with {descriptors} descriptors")
    return order


def encode_answer(why: str = "") -> bytes:
    """Return the reply: done, or why not."""
    return json.dumps({"error": why[: MESSAGE_BYTES // 8]} if why else {}).encode("ascii")


def check_answer(message: bytes) -> None:
    """Read a reply.

    Raises:
        OSError: it was not done, or this is no reply.
    """
    try:
        fields = Fields(parse(message.decode("ascii")))
        why = fields.take("error", str) if fields.has("error") else ""
        fields.end()
    except (UnicodeDecodeError, FieldError) as error:
        raise OSError(f"who follows Services answers what makes no sense: {error}") from error
    if why:
        raise OSError(f"who follows Services: {why}")
