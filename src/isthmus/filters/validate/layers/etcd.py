"""etcd: number of members, unique users, valid sizes and ports."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from isthmus.filters.errors import InputError
from isthmus.filters.etcd import ROOT
from isthmus.filters.suggest import check_keys, unknown
from isthmus.filters.validate.site import Site

GROUP, USERS = "etcd", "etcd_users"
PORTS = ("etcd_client_port", "etcd_peer_port", "etcd_metrics_port")
RIGHTS = ("read", "write", "readwrite")
# etcd recommends at most 8 GiB.
QUOTA_MIB = (64, 8192)
_NAME = re.compile(r"[a-z]([a-z0-9_-]{0,62}[a-z0-9])?")
_PREFIX = re.compile(r"([a-z0-9][a-z0-9._-]*/)+")


def etcd_problems(site: Site) -> Iterator[str]:
    """Yield what is wrong with the members, users and settings of etcd."""
    yield from _members(site)
    yield from site.port_problems(PORTS)
    yield from _numbers(site)
    yield from _users(site)


def _members(site: Site) -> Iterator[str]:
    members = site.group(GROUP)
    if len(members) % 2 == 0 and members:
        yield site.problem(
            f"group {GROUP} has {len(members)} hosts: {', '.join(members)}",
            "use 1 or 3: of an even number no more may fail than of one less",
            GROUP,
        )
    for member in members:
        if member not in site.group("base"):
            yield site.problem(
                f"host {member} of group {GROUP} is not in group base",
                "put it into controller, login or compute too, or into base",
                GROUP,
                member,
            )


def _numbers(site: Site) -> Iterator[str]:
    for variable, (first, last), remedy in (
        ("etcd_quota_mib", QUOTA_MIB, "the database of a large cluster has some hundred MiB"),
        ("etcd_snapshot_keep", (1, 10_000), "older ones than these are removed"),
    ):
        value = site.shared(variable)
        if value is not None and (not isinstance(value, int) or not first <= value <= last):
            yield site.problem(f"{variable} is {value!r}", f"write a number from {first} to {last}; {remedy}", variable)


def _users(site: Site) -> Iterator[str]:
    seen: set[str] = set()
    for user in site.shared_list(USERS):
        name = str(user["name"])
        if name in seen or name == ROOT or not _NAME.fullmatch(name):
            yield site.problem(
                f"{USERS} has {'two of the name' if name in seen else 'the name'} {name!r}",
                f"use a-z, 0-9, '-' and '_', each name once; {ROOT} is there without being named",
                "name",
                USERS,
                value=user["name"],
            )
        seen.add(name)
        try:
            check_keys(f"user {name} in {USERS}", user, ("name", "grants"), ("grants",))
            _check_grants(f"{USERS}, user {name}", user["grants"])
        except InputError as error:
            yield site.problem_of(error, "name", USERS, value=user["name"])


def _check_grants(kind: str, grants: Iterable[Mapping[str, Any]]) -> None:
    for grant in grants:
        check_keys(f"a grant in {kind}", grant, ("prefix", "access"), ("prefix", "access"))
        prefix, access = str(grant["prefix"]), str(grant["access"])
        if access not in RIGHTS:
            raise unknown(f"access in {kind}", access, RIGHTS)
        if not _PREFIX.fullmatch(prefix):
            raise InputError(
                f"prefix {prefix!r} in {kind} is none",
                "write words of a-z, 0-9, '.', '_' and '-', each with a slash after it, e.g. network/; what all keys of"
                " the cluster begin with is put before it",
            )
