"""The module accounts with real shadow-utils, on an /etc of its own."""

import json
import subprocess
import sys

import pytest

from tests.support.clusters.cluster import ROOT

HASH = "$6$salt$hash"
RUN = """
import json, sys
from tests.support import ansible_modules
asked = json.loads(sys.argv[1])
module = ansible_modules.load("roles/base/library/accounts.py")
reported = [ansible_modules.run(module, **one) for one in asked]
print(json.dumps(reported))
"""
SHOWN = "getent passwd; echo ==; getent group; echo ==; cat /etc/shadow"


@pytest.fixture
def bring(tmp_path):
    """Run the module some times on one host; return what it reported and what the host has then."""

    def run(*asked):
        layers = f"lowerdir=/etc,upperdir={tmp_path}/upper,workdir={tmp_path}/work"
        mount = f"mount -t tmpfs tmpfs {tmp_path} && mkdir {tmp_path}/upper {tmp_path}/work"
        script = f'{mount} && mount -t overlay overlay -o {layers} /etc && "$0" -c "$1" "$2" && echo == && {SHOWN}'
        words = ["unshare", "--mount", "sh", "-ec", script, sys.executable, RUN, json.dumps(asked)]
        done = subprocess.run(words, capture_output=True, text=True, cwd=ROOT, timeout=120, check=False)
        assert done.returncode == 0, done.stderr
        reported, *databases = done.stdout.split("==\n")
        return json.loads(reported), *map(entries, databases)

    return run


def entries(text):
    """Return a database's entries by name."""
    return {line.split(":")[0]: line.split(":") for line in text.splitlines()}


def account(**other):
    usual = {"name": "isth-ann", "uid": 42001, "groups": ["isth-users"], "password": "*"}
    return {**usual, "shell": "/bin/sh", **other}


GROUPS = [{"name": "isth-users"}, {"name": "isth-ann", "gid": 42001}]


def test_accounts_are_made_and_made_right(bring):
    first = {"groups": GROUPS, "users": [account(password=HASH, comment="Ann, of physics")]}
    second = {"groups": [{"name": "isth-more"}], "users": [account(groups=["isth-more"], comment="")]}
    reported, passwd, group, shadow = bring(first, second)
    assert [one["changed"] for one in reported] == [True, True]
    assert passwd["isth-ann"][2:] == ["42001", "42001", "", "/home/isth-ann", "/bin/sh"]
    assert (group["isth-more"][3], group["isth-users"][3]) == ("isth-ann", "")
    assert shadow["isth-ann"][1] == "*"


def test_password_is_that_hash_and_in_no_answer(bring):
    reported, _, _, shadow = bring({"groups": GROUPS, "users": [account(password=HASH)]})
    assert shadow["isth-ann"][1] == HASH
    assert HASH not in json.dumps([{key: one[key] for key in ("accounts", "diff")} for one in reported])


def test_who_left_is_removed_and_nobody_else(bring):
    made = {"groups": GROUPS, "users": [account()]}
    reported, passwd, _, _ = bring(made, {"absent": ["isth-ann", "isth-never"]})
    assert reported[1]["accounts"] == ["user isth-ann removed"]
    assert "isth-ann" not in passwd
    assert "root" in passwd


def test_check_run_changes_nothing(bring):
    reported, passwd, group, _ = bring({"groups": GROUPS, "users": [account()], "_ansible_check_mode": True})
    assert reported[0]["changed"]
    assert "isth-ann" not in passwd
    assert "isth-ann" not in group


def test_number_that_another_has_is_refused(bring):
    reported, *_ = bring({"groups": GROUPS, "users": [account(uid=0)]})
    assert reported[0]["failed"]
    assert "user isth-ann: useradd" in reported[0]["msg"]
