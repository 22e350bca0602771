"""What nodes publish of their keys in etcd, and which of it is trusted.

    /isthmus/<cluster>/wireguard/<node>   the node's statement (JSON as text), its certificate and its signature

These are none of the pod networks' keys: an older daemon refuses what it does not know there. Any daemon may write any
of them. What is not as a node with that name has signed it, for this cluster, is left out with the reason; so is what
the node has since replaced, as far as this daemon saw it.
"""

from __future__ import annotations

import json
import re
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from ipaddress import IPv4Address

from isthmus.clients.etcd.store import Changes, DeniedError, Etcd, Found, Put, Watch
from isthmus.model.networks.wireguard import Peer
from isthmus.network import bounds
from isthmus.network.api.fields import FieldError, Fields, parse
from isthmus.network.encryption.identity import Authorities, Identity, IdentityError

SCHEMA = 1
# Longest record, and longest statement in it, in characters.
RECORD_MAX, STATEMENT_MAX = 16_384, 1_024
_TIME_MAX = 2**53
_PUBLIC_KEY = re.compile(r"[A-Za-z0-9+/]{42}[AEIMQUYcgkosw048]=")


@dataclass(frozen=True, slots=True)
class Statement:
    """What a node says of itself.

    Attributes:
        node: its name.
        peer: its key, address and port.
        made_s: when it made the key, seconds since the epoch; of two statements the later one counts.
    """

    node: str
    peer: Peer
    made_s: int


@dataclass(frozen=True, slots=True)
class Trusted:
    """A statement that is its node's.

    Attributes:
        statement: what it says.
        until: when the node's certificate ends.
        revision: etcd's, when it was written.
    """

    statement: Statement
    until: datetime
    revision: int = 0


class Records:
    """The records of one cluster; every method that asks etcd raises EtcdError."""

    def __init__(self, etcd: Etcd, cluster: str) -> None:
        self._etcd, self.cluster = etcd, cluster
        self.prefix = f"/isthmus/{cluster}/wireguard/"

    def read(self) -> Found:
        """Return all of them."""
        return self._etcd.range(self.prefix)

    def watch(self, revision: int) -> Watch:
        """Return what comes after a revision."""
        return self._etcd.watch(self.prefix, revision)

    def publish(self, node: str, record: str) -> None:
        """Write a node's."""
        self._etcd.transact({}, [Put(self.prefix + node, record)])

    def withdraw(self, node: str) -> None:
        """Remove a node's; where nobody may write them there are none."""
        with suppress(DeniedError):
            self._etcd.delete(self.prefix + node)


class Book:
    """The records as this node knows them.

    A node can sign that it has any key, another's too, whose it then would be to WireGuard. Of two nodes with one key,
    or one address, the one that said so first is trusted: nobody knows a key before it is published.

    Args:
        records: etcd's.
        authorities: say who a node is.

    Attributes:
        texts: the records.
        refused: node -> why it is not trusted.
        displaced: nodes among these whose key or address another node has published before.
    """

    def __init__(self, records: Records, authorities: Authorities) -> None:
        self._records, self._authorities = records, authorities
        self._latest: dict[str, int] = {}
        self._signed: dict[str, Trusted] = {}
        self._wrong: dict[str, str] = {}
        self.texts: dict[str, str] = {}
        self.refused: dict[str, str] = {}
        self.displaced: set[str] = set()

    def begin(self, found: Found) -> None:
        """Take all records."""
        entries = {key.removeprefix(self._records.prefix): entry for key, entry in found.entries.items()}
        for node in self.texts.keys() - entries.keys():
            self._take(node, None, 0)
        for node, entry in entries.items():
            self._take(node, entry.value, entry.revision)

    def advance(self, changes: Changes) -> None:
        """Take those that changed."""
        for event in changes.events:
            self._take(event.key.removeprefix(self._records.prefix), event.value, event.revision)

    def trusted(self) -> dict[str, Statement]:
        """Return what is trusted now, by node; `refused` says why the others are not."""
        now = datetime.now(UTC)
        found: dict[str, Statement] = {}
        self.refused, self.displaced = dict(self._wrong), set()
        taken: dict[str | IPv4Address, str] = {}
        for node, each in sorted(self._signed.items(), key=lambda item: item[1].revision):
            peer = each.statement.peer
            first = taken.get(peer.public_key) or taken.get(peer.address)
            if now > each.until:
                self.refused[node] = "its certificate is out of date; run playbooks/renew_certificates.yml"
            elif first:
                self.refused[node] = f"its key or address is that of {first}, which published it before"
                self.displaced.add(node)
            else:
                taken |= {peer.public_key: node, peer.address: node}
                found[node] = each.statement
        return found

    def _take(self, node: str, text: str | None, revision: int) -> None:
        if self.texts.get(node) == text or not bounds.is_node_name(node):
            return
        self._signed.pop(node, None)
        self._wrong.pop(node, None)
        if text is None:
            self.texts.pop(node, None)
            return
        self.texts[node] = text
        try:
            found = decode(node, text, self._records.cluster, self._authorities)
            if found.statement.made_s < self._latest.get(node, 0):
                raise IdentityError("it is older than one that was seen before")
        except (FieldError, IdentityError) as error:
            self._wrong[node] = str(error)
        else:
            self._signed[node] = replace(found, revision=revision)
            self._latest[node] = found.statement.made_s


def encode(statement: Statement, cluster: str, identity: Identity) -> str:
    """Return a node's record: what it states, signed."""
    said = json.dumps(
        {
            "cluster": cluster,
            "node": statement.node,
            "public_key": statement.peer.public_key,
            "address": str(statement.peer.address),
            "port": statement.peer.port,
            "made_s": statement.made_s,
        },
        sort_keys=True,
        separators=(",", ":"),
    )
    record = {
        "schema": SCHEMA,
        "statement": said,
        "certificate": identity.certificate,
        "signature": identity.sign(said),
    }
    return json.dumps(record, sort_keys=True, separators=(",", ":"))


def decode(node: str, text: str, cluster: str, authorities: Authorities) -> Trusted:
    """Return what a node has stated.

    Raises:
        FieldError: the record is none of this version.
        IdentityError: it is not the node's, or another cluster's.
    """
    if len(text) > RECORD_MAX:
        raise FieldError(f"longer than {RECORD_MAX} characters")
    record = Fields(parse(text))
    record.integer("schema", SCHEMA, SCHEMA)
    said = record.text("statement", STATEMENT_MAX)
    certificate, signature = record.text("certificate", RECORD_MAX), record.text("signature", STATEMENT_MAX)
    record.end()
    statement = _statement(Fields(parse(said)), node, cluster)
    return Trusted(statement, authorities.verify(node, statement.peer.address, said, certificate, signature))


def certificate_of(text: str) -> str:
    """Return the certificate in a record, empty where there is none."""
    try:
        return Fields(parse(text)).text("certificate", RECORD_MAX)
    except FieldError:
        return ""


def _statement(fields: Fields, node: str, cluster: str) -> Statement:
    named = fields.text("node", bounds.NODE_NAME_MAX, bounds.is_node_name)
    if (named, fields.text("cluster", RECORD_MAX)) != (node, cluster):
        raise IdentityError("it is of another node or cluster")
    key = fields.text("public_key", 44, _PUBLIC_KEY.fullmatch)
    address: IPv4Address = fields.address("address")
    peer = Peer(key, address, fields.integer("port", 1, 65535))
    found = Statement(node, peer, fields.integer("made_s", 0, _TIME_MAX))
    fields.end()
    return found
