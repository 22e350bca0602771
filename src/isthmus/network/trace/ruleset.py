"""Evaluates a packet in a node's filter, from the same text that nft gets.

`rules` writes the policy once, for the kernel; this walks the same lines and set elements, so a trace cannot show
another way than the packets take. It knows the expressions that `rules` uses and no more: a line it cannot read is
an error, never passed over.

What a packet does not have (a port of ICMP, the socket of a forwarded packet) matches nothing, not even `!=`, as in
nft. What is not given (a port that was left open, what a listener is bound to) is UNKNOWN: such a rule may match, the
walk goes on behind it, and the outcome says that it depends.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network

from isthmus.network.node.rules import Elements

_KEY = re.compile(
    r"meta mark & \S+|meta \w+|ct original ip daddr|tcp flags & \([^)]*\)|(?:tcp|udp|th) [sd]port|ip6? [sd]addr"
    r"|ip6 (?:nexthdr|length)|@th,\d+,\d+|[io]ifname|ct \w+|icmp(?:v6)? type|socket wildcard|ether \w+|arp saddr \w+"
)
_VALUE = re.compile(r'(?P<wrong>!= |== )?(?P<value>\{[^}]*\}|\([^)]*\)|"[^"]*"|\S+)(?: |$)')
_STATEMENT = re.compile(
    r"(?P<verdict>accept|drop|reject with icmp(?:v6)? type \S+|masquerade(?: to \S+)?|notrack)$"
    r"|(?P<way>jump|goto) (?P<chain>\w+)$|meta mark set meta mark \| \S+$"
    r"|dnat ip to (?P<keys>.+) map @(?P<map>\w+)$"
)
# A frame gets what a map has for it; one that the map lacks is not matched.
_MAPPED = re.compile(r"ether daddr set (?P<key>\w+) map @(?P<map>\w+) ")
# What stands for a rule where none of a base chain matched; all of ours have this one.
POLICY = "policy accept"


class Unknown(StrEnum):
    """The value of what is not given."""

    UNKNOWN = "?"


Value = str | int | IPv4Address | IPv6Address | Unknown
Packet = Mapping[str, Value]


class Fate(StrEnum):
    """What a rule does with a packet."""

    ACCEPT = "accept"
    DROP = "drop"
    REJECT = "reject"
    # The packet goes on.
    MARK = "mark"


@dataclass(frozen=True, slots=True)
class Met:
    """A rule that a packet met.

    Attributes:
        chain: where the rule is.
        rule: its text.
        why: its comment; empty when it has none.
        fate: what it does.
        sure: whether it matches for sure; else that depends on something unknown.
    """

    chain: str
    rule: str
    why: str
    fate: Fate
    sure: bool = True


class RulesetError(Exception):
    """A line of the filter that this version cannot read."""


@dataclass(frozen=True, slots=True)
class Ruleset:
    """The filter of one node.

    Attributes:
        chains: chain -> its lines, of one table.
        elements: set -> its elements.
    """

    chains: Mapping[str, list[str]]
    elements: Elements

    def at(self, hook: str) -> list[str]:
        """Return the base chains that filter at a hook; a packet must pass all of them."""
        begins = f"type filter hook {hook} priority filter;"
        return [chain for chain, (first, *_) in self.chains.items() if first.startswith(begins)]

    def walk(self, chain: str, packet: Packet) -> list[Met]:
        """Return the rules that decide about a packet in a base chain, the last of them for sure.

        Raises:
            RulesetError: a line of it cannot be read.
        """
        met = list(self._walk(chain, packet))
        return met if met and met[-1].sure else [*met, Met(chain, POLICY, "no rule forbids it", Fate.ACCEPT)]

    def turned(self, chain: str, packet: Packet) -> IPv4Address | None:
        """Return where a base chain of type nat turns a packet to, by a map; None where it goes on as it is.

        Raises:
            RulesetError: a line of it cannot be read.
        """
        for line in self.chains[chain]:
            if line.startswith("type "):
                continue
            _, _, statement, matches = self._match(line, packet)
            if not statement["map"]:
                raise RulesetError(f"{line}: the trace of this version cannot read it")
            values = [packet.get(key, Unknown.UNKNOWN) for key in statement["keys"].split(" . ")]
            for element in self.elements[statement["map"]] if matches else ():
                key, _, target = element.partition(" : ")
                if Unknown.UNKNOWN not in values and _fits(key, values):
                    return IPv4Address(target)
        return None

    def _walk(self, chain: str, packet: Packet) -> Iterator[Met]:
        """Yield what is met, up to and with what decides."""
        for line in self.chains[chain]:
            if line.startswith("type "):
                continue
            rule, why, statement, matches = self._match(line, packet)
            if matches is False:
                continue
            if statement["chain"]:
                if matches is None:
                    raise RulesetError(f"{line}: whether it matches is unknown, and it leads elsewhere")
                inner = list(self._walk(statement["chain"], packet))
                yield from inner
                if statement["way"] == "goto" or (inner and inner[-1].sure):
                    return
                continue
            fate = _FATES.get((statement["verdict"] or "").partition(" ")[0], Fate.MARK)
            if fate is not Fate.MARK:
                yield Met(chain, rule, why, fate, matches is True)
                if matches:
                    return

    def _match(self, line: str, packet: Packet) -> tuple[str, str, re.Match[str], bool | None]:
        """Return rule, comment, statement, and whether it matches; None: perhaps."""
        rule, _, why = line.partition(' comment "')
        rest, seen = rule, set()
        while not (statement := _STATEMENT.match(rest)):
            rest, one = self._expression(line, rest, packet)
            seen.add(one)
        return rule, why.rstrip('"'), statement, False if False in seen else None if None in seen else True

    def _expression(self, line: str, rest: str, packet: Packet) -> tuple[str, bool | None]:
        if mapped := _MAPPED.match(rest):
            known = {element.partition(" : ")[0] for element in self.elements[mapped["map"]]}
            return rest[mapped.end() :], packet.get(mapped["key"]) in known
        keys = []
        while found := _KEY.match(rest):
            keys.append(found[0])
            rest = rest[found.end() :].removeprefix(" ")
            if not rest.startswith(". "):
                break
            rest = rest[2:]
        value = _VALUE.match(rest)
        if not keys or not value:
            raise RulesetError(f"{line}: the trace of this version cannot read {rest!r}")
        return rest[value.end() :], self._equal(keys, packet, value["value"], bool(value["wrong"] == "!= "))

    def _equal(self, keys: list[str], packet: Packet, text: str, negated: bool) -> bool | None:
        if any(key not in packet for key in keys):
            return False
        values = [packet[key] for key in keys]
        if Unknown.UNKNOWN in values:
            return None
        equal = any(_fits(element, values) for element in self._set(text))
        return equal != negated

    def _set(self, text: str) -> Iterable[str]:
        if text.startswith("@"):
            return self.elements[text[1:]]
        return [element.strip(' "') for element in text.strip("{}()").split(",")]


def _fits(element: str, values: list[Value]) -> bool:
    parts = element.split(" . ")
    return len(parts) == len(values) and all(map(_is, parts, values))


def _is(text: str, value: Value) -> bool:
    match value:
        case IPv4Address():
            return value in IPv4Network(text)
        case IPv6Address():
            return value in IPv6Network(text)
        case int():
            first, _, last = text.partition("-")
            return int(first, 0) <= value <= int(last or first, 0)
    return value.startswith(text[:-1]) if text.endswith("*") else value == text


_FATES = {"accept": Fate.ACCEPT, "drop": Fate.DROP, "reject": Fate.REJECT}
