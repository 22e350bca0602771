"""Admission of nodes: a pure decision from a request, a token, and the nodes that joined before.

A node is known by its key. The node that a token was used for may ask again with the same key, also without a token:
a join that was cut off goes on, and a second run finds what it needs. Another key under a name that has joined is
another machine: refused, unless the token was made with `--replace`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from isthmus.node.tokens import Record, fits

MAKE = "on the controller: isthmus node token create --nodes {name}"


class RefusalError(Exception):
    """The message to the node; the log has it too."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A request, as far as it decides.

    Attributes:
        name: of the node.
        key: the hash of its key.
        release: of its Isthmus.
        token: the token's id, "" for none.
        secret: the token's.
    """

    name: str
    key: str
    release: str
    token: str
    secret: str


@dataclass(frozen=True, slots=True)
class Joined:
    """A node that has joined.

    Attributes:
        key: the hash of its key.
        token: id of the token that let it in.
        time: when, in seconds since the epoch.
        address: where it came from.
    """

    key: str
    token: str
    time: float
    address: str


@dataclass(frozen=True, slots=True)
class Known:
    """What the controller knows.

    Attributes:
        kind: the class of its nodes.
        nodes: names that may join.
        release: of its Isthmus.
        tokens: id -> record, none of a name that was not asked for.
        joined: name -> who has joined under it.
        used: token's id -> the nodes (name, key) that have used it.
    """

    kind: str
    nodes: Mapping[str, str]
    release: str
    tokens: Mapping[str, Record]
    joined: Mapping[str, Joined]
    used: Mapping[str, frozenset[tuple[str, str]]]


def admit(asked: Asked, known: Known, now: float) -> None:
    """Let a node in.

    Raises:
        RefusalError: it is not let in; a host without a valid token learns nothing else.
    """
    before = known.joined.get(asked.name)
    again = before is not None and before.key == asked.key
    if asked.token:
        _look_at_token(asked, known, now)
    elif not again:
        raise RefusalError(f"a token is needed; {MAKE.format(name='NAME')}")
    if asked.name not in known.nodes:
        raise RefusalError(
            f"the cluster has no {known.kind} node {asked.name}; add it to the inventory and run playbooks/join.yml,"
            " or give the right name with --name"
        )
    if before is not None and not again and not known.tokens[asked.token].replace:
        raise RefusalError(
            f"another machine has joined as {asked.name}; take that out (playbooks/remove_nodes.yml), or allow it,"
            f" {MAKE.format(name=asked.name)} --replace"
        )
    if asked.release != known.release:
        raise RefusalError(
            f"the image has Isthmus {asked.release or 'none'}, the cluster {known.release}; make the image with the"
            " tree that the cluster was deployed from (playbooks/image.yml), or deploy this one (site.yml)"
        )


def _look_at_token(asked: Asked, known: Known, now: float) -> None:
    record = known.tokens.get(asked.token)
    if record is None or not fits(record, asked.secret):
        raise RefusalError(f"the token is not valid, or was revoked; make another one {MAKE.format(name='NAME')}")
    if now >= record.expires:
        raise RefusalError(f"the token has expired; make another one {MAKE.format(name='NAME')}")
    if not record.allows(asked.name, known.kind):
        raise RefusalError(f"the token is not for {asked.name}; make one for it {MAKE.format(name=asked.name)}")
    users = known.used.get(asked.token, frozenset())
    if (asked.name, asked.key) not in users and len(users) >= record.uses:
        raise RefusalError(f"the token was used up by {len(users)}; make another one {MAKE.format(name=asked.name)}")
