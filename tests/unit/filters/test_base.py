"""/etc/hosts is sorted and without doubles; password hashes are stable."""

from __future__ import annotations

import pytest
from passlib.hash import sha512_crypt

from isthmus.filters.base import (
    base_home_is_here,
    base_hosts_file,
    base_login_rules,
    base_password_hash,
    base_user_accounts,
    base_user_groups,
)
from isthmus.filters.errors import InputError

HOSTS = [{"name": "c10", "address": "10.0.0.20"}, {"name": "c2", "address": "10.0.0.3"}]


@pytest.mark.parametrize(
    ("domain", "lines"),
    [
        ("", ["10.0.0.3 c2", "10.0.0.20 c10"]),
        ("demo.test", ["10.0.0.3 c2.demo.test c2", "10.0.0.20 c10.demo.test c10"]),
    ],
)
def test_hosts_file(domain: str, lines: list[str]) -> None:
    text = base_hosts_file(HOSTS, domain)
    assert text.endswith("\n")
    assert text.splitlines()[1:] == [
        "127.0.0.1 localhost",
        "::1 localhost ip6-localhost ip6-loopback",
        *lines,
    ]


def test_hosts_file_says_who_owns_it() -> None:
    assert base_hosts_file([], "").startswith("# Managed by Ansible")


def test_hosts_file_puts_ipv6_last() -> None:
    text = base_hosts_file([{"name": "a", "address": "fd00::1"}, *HOSTS], "")
    assert text.splitlines()[-1] == "fd00::1 a"


@pytest.mark.parametrize(
    ("host", "message"),
    [
        ({"name": "c3", "address": "10.0.0.3"}, "c2 and c3 both have 10.0.0.3.*its own address"),
        ({"name": "c2", "address": "10.0.0.4"}, "host c2 is listed twice"),
        ({"name": "c3", "address": "10.0.0.300"}, "host c3 has no IP address but '10.0.0.300'.*base_address"),
        ({"name": "c3", "address": ""}, "host c3 has no IP address"),
        ({"name": "c 3", "address": "10.0.0.4"}, "'c 3' is no host name"),
        ({"name": "c3\n10.0.0.1 ctl", "address": "10.0.0.4"}, "is no host name"),
        ({"name": "", "address": "10.0.0.4"}, "'' is no host name"),
    ],
)
def test_hosts_file_refuses(host: dict[str, str], message: str) -> None:
    with pytest.raises(InputError, match=message):
        base_hosts_file([*HOSTS, host], "")


def test_password_hash_is_stable_and_verifies() -> None:
    hashed = base_password_hash("secret", "saltsalt")
    assert hashed == base_password_hash("secret", "saltsalt")
    assert hashed.startswith("$6$rounds=100000$saltsalt$")
    assert sha512_crypt.verify("secret", hashed)


@pytest.mark.parametrize(
    ("clear", "salt", "message"),
    [
        ("", "saltsalt", "password is empty"),
        ("sec\0ret", "saltsalt", "NUL"),
        ("secret", "", "salt is not usable.*8 to 16"),
        ("secret", "short", "salt is not usable"),
        ("secret", "salt$salt", "salt is not usable"),
        ("secret", "s" * 17, "salt is not usable"),
    ],
)
def test_password_hash_refuses_and_keeps_the_secret(clear: str, salt: str, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        base_password_hash(clear, salt)
    assert "secret" not in str(caught.value)


def outcome(rules: str, holds: set[str]) -> str:
    """Read the rules as PAM does; return what a login ends with when these conditions hold."""
    lines = [line.removeprefix("account ") for line in rules.splitlines()]
    at = 0
    while at < len(lines):
        how, _, rest = lines[at].partition(" pam_succeed_if.so quiet ")
        jump = int(how.split("=")[1].split()[0]) if rest in holds else 0
        if lines[at].startswith("requisite pam_deny.so"):
            return "refused"
        at += jump + 1
    return "goes on"


@pytest.mark.parametrize(
    ("holds", "ends"),
    [
        (set(), "refused"),
        ({"uid eq 0"}, "goes on"),
        ({"user = debian"}, "goes on"),
        ({"user ingroup wheel"}, "goes on"),
        ({"user ingroup users"}, "refused"),
    ],
)
def test_login_rules_let_admins_alone_in(holds: set[str], ends: str) -> None:
    rules = base_login_rules(["sudo", "wheel"], ["debian", "", "root", "debian"], ["login", "login2"])
    assert outcome(rules, holds) == ends
    assert "Log in to login or login2\n" in rules
    assert len(rules.splitlines()) == 6


def test_account_has_what_base_users_leaves_open():
    (plain,) = base_user_accounts([{"name": "alice", "uid": 2001}], "members")
    assert plain == {
        "name": "alice",
        "uid": 2001,
        "groups": ["members"],
        "password": "*",
        "shell": "/bin/bash",
        "comment": "",
    }
    reported = {
        "name": "bob",
        "uid": 2002,
        "groups": ["adm"],
        "password_hash": "$6$x",
        "shell": "/bin/sh",
        "comment": "Bob",
    }
    (full,) = base_user_accounts([reported], "members")
    assert (full["groups"], full["password"], full["comment"]) == (["members", "adm"], "$6$x", "Bob")
    assert base_user_groups([reported]) == [{"name": "bob", "gid": 2002}]


@pytest.mark.parametrize(
    ("source", "names", "here"),
    [
        ("ctl:/home", ["ctl", "10.0.0.2"], True),
        ("10.0.0.2:/home/", ["ctl", "10.0.0.2"], True),
        ("[fd00::1]:/home", ["ctl", "fd00::1"], True),
        ("ctl:/home", ["ctl2", "10.0.0.3"], False),
        ("ctl:/export/home", ["ctl", "10.0.0.2"], False),
        ("/home", ["ctl", ""], False),
        ("", ["", ""], False),
    ],
)
def test_host_that_exports_its_home_does_not_mount_it_over_itself(source: str, names: list[str], here: bool) -> None:
    assert base_home_is_here(source, names) is here
