"""munge: authenticates an account to holders of the cluster's key; see munge(7).

A credential is for one reader: munged opens it for that uid alone, once, and for a minute. Who reads checks what it
says, too: it stands for one question of one connection.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from isthmus.clients.process import ProcessError, run

TIMEOUT_S = 10.0
# Seconds that one is good for: clocks of nodes may differ a little.
_LIFE_S = 60
# unmunge(1): the keys in this order, an empty line, what was written.
_KEYS = ("--keys=STATUS,UID",)
_STATUS = re.compile(r"STATUS: +([\w ,.'-]+ \([0-9]+\))\n")
_ANSWER = re.compile(_STATUS.pattern + r"UID: +\S+ \((?P<uid>[0-9]+)\)\n\n(?P<payload>.*)", re.DOTALL)


class MungeError(Exception):
    """munged does not answer, or a credential is invalid; the message says why."""


@dataclass(frozen=True, slots=True)
class Opened:
    """A credential that is good.

    Attributes:
        uid: who wrote it.
        payload: what.
    """

    uid: int
    payload: str


def credential(payload: str, reader: int) -> str:
    """Return a credential of the caller's account.

    Args:
        payload: what it says, one line.
        reader: the uid that may open it.

    Raises:
        MungeError: munged did not answer.
    """
    words = [f"--restrict-uid={reader}", f"--ttl={_LIFE_S}"]
    try:
        return run(["munge", *words], timeout_s=TIMEOUT_S, input_text=payload).stdout.strip()
    except ProcessError as error:
        raise MungeError(f"munged gives no credential: {error}") from error


def opened(text: str) -> Opened:
    """Open a credential that was made for this account.

    Raises:
        MungeError: it is none, it is too old, it was opened before, or it is for another reader.
    """
    try:
        output = run(["unmunge", *_KEYS], timeout_s=TIMEOUT_S, input_text=text).stdout
    except ProcessError as error:
        # On its standard output is what the credential says, even then: nobody's to read.
        status = _STATUS.match(error.stdout)
        words = status[1] if status else error.stderr.strip().removeprefix("unmunge: Error: ") or "no answer"
        raise MungeError(f"the credential is not good: {words}") from None
    read = _ANSWER.fullmatch(output)
    if not read:
        raise MungeError("unmunge's answer cannot be read")
    return Opened(int(read["uid"]), read["payload"].removesuffix("\n"))
