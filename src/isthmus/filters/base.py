"""The layer base: /etc/hosts and password hashes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Any

from passlib.hash import sha512_crypt

from isthmus.filters.errors import InputError
from isthmus.filters.trust import identity

# Far above crypt's old default of 5000, yet a login on a busy node stays below a tenth of a second.
PASSWORD_ROUNDS = 100_000

_SALT = re.compile(r"[./0-9A-Za-z]{8,16}")
_HOST = re.compile(r"[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?")
_HEADER = """\
# Managed by Ansible (role base): changes are overwritten.
127.0.0.1 localhost
::1 localhost ip6-localhost ip6-loopback
"""


def base_hosts_file(hosts: Iterable[Mapping[str, str]], domain: str = "") -> str:
    """Return /etc/hosts, sorted by address.

    Args:
        hosts: one dict per host: name (short), address (IPv4 or IPv6).
        domain: the cluster's DNS domain; empty for none.

    Returns:
        The localhost lines, then `address name.domain name`, or `address name` without a domain.

    Raises:
        InputError: for an invalid or duplicate address or name.
    """
    names: dict[IPv4Address | IPv6Address, str] = {}
    for host in hosts:
        name, address = _checked_name(host["name"]), _checked_address(host)
        if address in names:
            raise InputError(f"{names[address]} and {name} both have {address}", "give each host its own address")
        if name in names.values():
            raise InputError(f"host {name} is listed twice", "give each host its own name")
        names[address] = name
    suffix = f".{domain}" if domain else ""
    ordered = sorted(names.items(), key=lambda item: (item[0].version, int(item[0])))
    return _HEADER + "".join(f"{address} {name}{suffix}{f' {name}' if suffix else ''}\n" for address, name in ordered)


def base_addresses(names: Iterable[str], hostvars: Mapping[str, Mapping[str, Any]]) -> list[dict[str, str]]:
    """Return name and base_address of each host, from the inventory alone: no host has to be reachable."""
    return [{"name": name, "address": str(hostvars[name]["base_address"])} for name in names]


def base_home_is_here(source: str, names: Iterable[str]) -> bool:
    """Return whether a host's own /home is what `server:/path` exports, so that it must not mount it over itself.

    Args:
        source: of /home by NFS.
        names: the host's, and its addresses.
    """
    server, _, path = source.partition(":/")
    return path.strip("/") == "home" and server.strip("[]") in names


def base_users_in_state(users: Iterable[Mapping[str, Any]], state: str) -> list[Mapping[str, Any]]:
    """Return the entries of base_users with a state, `present` or `absent`; an entry without one is `present`."""
    return [user for user in users if user.get("state", "present") == state]


def base_user_homes(users: Iterable[Mapping[str, Any]], cluster: str) -> list[dict[str, Any]]:
    """Return module user_homes' entry for each user: authorized keys, and the comment of the own key."""
    return [
        {"name": user["name"], "comment": f"{user['name']}@{cluster}", "keys": list(user.get("ssh_keys") or [])}
        for user in users
    ]


def base_user_groups(users: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return each user's primary group, which has the user's name and number."""
    return [{"name": user["name"], "gid": user["uid"]} for user in users]


def base_user_accounts(users: Iterable[Mapping[str, Any]], group: str) -> list[dict[str, Any]]:
    """Return the desired accounts with all defaults filled in; without a password, password login is disabled.

    Args:
        users: entries of base_users.
        group: of which all users are members.
    """
    return [
        {
            "name": user["name"],
            "uid": user["uid"],
            "groups": [group, *(user.get("groups") or [])],
            "password": user.get("password_hash", "*"),
            "shell": user.get("shell", "/bin/bash"),
            "comment": user.get("comment", ""),
        }
        for user in users
    ]


def base_login_rules(groups: Iterable[str], accounts: Iterable[str], login: Iterable[str]) -> str:
    """Return lines of pam.conf(5) that admit root, some groups and some accounts, and refuse all others with a message.

    Args:
        groups: whose members are admitted.
        accounts: that are admitted; empty names are ignored.
        login: the hosts where users log in.
    """
    named = [f"user = {name}" for name in dict.fromkeys(accounts) if name and name != "root"]
    rules = ["uid eq 0", *named, *(f"user ingroup {name}" for name in groups)]
    # Each skips the remaining rules, the message and the refusal.
    lines = [
        f"[success={len(rules) - at + 1} default=ignore] pam_succeed_if.so quiet {rule}"
        for at, rule in enumerate(rules)
    ]
    words = f"%u may not log in to %h, which is for admins alone. Log in to {' or '.join(login)}"
    return "".join(f"account {line}\n" for line in [*lines, f"optional pam_echo.so {words}", "requisite pam_deny.so"])


def base_password_hash(clear: str, salt: str) -> str:
    """Hash a password for /etc/shadow (sha512-crypt); equal input gives an equal hash.

    Args:
        clear: the password.
        salt: 8 to 16 characters of `./0-9A-Za-z`; keep it, or the hash changes with every run.

    Raises:
        InputError: for an empty password, one with a NUL, or a bad salt. It never shows the password.
    """
    if not clear or "\0" in clear:
        raise InputError("a password is empty or holds a NUL character", "set another one")
    if not _SALT.fullmatch(salt):
        raise InputError("a password's salt is not usable", "give 8 to 16 characters of ./0-9A-Za-z")
    hashed = sha512_crypt.using(salt=salt, rounds=PASSWORD_ROUNDS)  # type: ignore[no-untyped-call]
    return str(hashed.hash(clear))


def _checked_name(name: str) -> str:
    if not _HOST.fullmatch(name):
        raise InputError(f"{name!r} is no host name", "use letters, digits, '-' and '.'")
    return name


def _checked_address(host: Mapping[str, str]) -> IPv4Address | IPv6Address:
    try:
        return ip_address(host["address"])
    except ValueError as error:
        raise InputError(
            f"host {host['name']} has no IP address but {host['address']!r}", "set base_address of that host"
        ) from error


FILTERS: dict[str, Callable[..., object]] = {
    "base_addresses": base_addresses,
    "base_home_is_here": base_home_is_here,
    "base_hosts_file": base_hosts_file,
    "base_password_hash": base_password_hash,
    "base_login_rules": base_login_rules,
    "base_user_accounts": base_user_accounts,
    "base_user_groups": base_user_groups,
    "base_user_homes": base_user_homes,
    "base_users_in_state": base_users_in_state,
    "base_folder_is_closed": identity.base_folder_is_closed,
    "base_identity_problems": identity.base_identity_problems,
    "base_live_secrets": identity.base_live_secrets,
    "base_program_key": identity.base_program_key,
}
