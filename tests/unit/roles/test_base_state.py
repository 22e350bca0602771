"""The module base_state: accounts that are as wanted are not named, all others are; no hash leaves the host."""

import grp
import os
import pwd

import pytest

from tests.support import ansible_modules

ME = pwd.getpwuid(os.getuid())
HASH = "$6$salt$hash"


@pytest.fixture
def look(monkeypatch, tmp_path):
    """Ask a host that has the account of who runs this; the account's group has its name."""
    module = ansible_modules.load("roles/base/library/base_state.py")
    for name in ("CLUSTER", "HOSTNAME", "LOGINS", "SHADOW", "FUSE"):
        monkeypatch.setattr(module, name, tmp_path / name)
    (tmp_path / "SHADOW").write_text(f"other:*:1::\n{ME.pw_name}:{HASH}:1::\n")
    return lambda **asked: ansible_modules.run(module, **asked)


@pytest.fixture
def account():
    groups = [each.gr_name for each in grp.getgrall() if ME.pw_name in each.gr_mem and each.gr_name != ME.pw_name]
    described = {"comment": ME.pw_gecos, "groups": groups, "password": HASH}
    return {"name": ME.pw_name, "uid": ME.pw_uid, "shell": ME.pw_shell, **described}


def test_new_host_has_nothing(look, tmp_path):
    reported = look(program=str(tmp_path / "program"), absent=["nobody-has-this-name"])
    assert (reported["cluster"], reported["logins"], reported["fuse"], reported["has_program"]) == (
        "",
        "",
        False,
        False,
    )
    assert (reported["leaving"], reported["changed"]) == ([], False)


def test_account_that_is_right_is_not_named(look, account):
    assert look(users=[account])["users"] == []


@pytest.mark.parametrize(
    "other",
    [
        {"uid": 4242},
        {"shell": "/bin/other"},
        {"comment": "other"},
        {"password": "*"},
        {"groups": ["more"]},
        {"name": "x-y"},
    ],
    ids=lambda other: next(iter(other)),
)
def test_account_that_differs_in_anything_is_named(look, account, other):
    wanted = account | other
    reported = look(users=[wanted])
    assert reported["users"] == [wanted["name"]]
    assert HASH not in str({name: value for name, value in reported.items() if name != "invocation"})


def test_group_is_right_with_its_number_or_without_one(look):
    here = grp.getgrgid(ME.pw_gid)
    wanted = [{"name": here.gr_name}, {"name": here.gr_name, "gid": here.gr_gid}]
    assert look(groups=wanted)["groups"] == []
    assert look(groups=[{"name": here.gr_name, "gid": 4242}])["groups"] == [here.gr_name]


def test_account_that_left_is_named_while_it_is_there(look):
    assert look(absent=[ME.pw_name, "nobody-has-this-name"])["leaving"] == [ME.pw_name]


def test_file_in_place_of_the_device_is_no_device(look, tmp_path):
    (tmp_path / "FUSE").touch(mode=0o666)
    assert not look()["fuse"]
