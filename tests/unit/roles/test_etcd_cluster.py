"""The module etcd_cluster: who is waited for, and when etcd is allowed to go back."""

import json

import pytest

from tests.support import ansible_modules

cluster = ansible_modules.load("roles/etcd/library/etcd_cluster.py")
MEMBERS = {f"e{number}": f"https://10.0.0.{number}:2379" for number in (1, 2, 3)}
OLD, NEW = "3.6.14", "3.7.3"


def status(version=OLD, storage=None, back="", **changes):
    """What a member says of itself."""
    said = {
        "version": version,
        "leader": 7,
        "raftAppliedIndex": 50,
        "storageVersion": f"{version[:3]}.0" if storage is None else storage,
    }
    info = {"downgradeInfo": {"enabled": True, "targetVersion": f"{back}.0"} if back else {}}
    return said | info | changes


def printed(*statuses):
    """Return etcdctl's answer; None for a member that did not answer."""
    rows = zip(MEMBERS.values(), statuses, strict=True)
    return json.dumps([{"Endpoint": url, "Status": each} for url, each in rows if each])


def problems(*statuses, phase="before", name=""):
    seen = cluster.read(printed(*statuses), MEMBERS)
    return [*cluster.problems(seen, MEMBERS, cluster.Request(NEW, cluster.Phase(phase), name))]


LACKING = {
    "nothing": ((status(), status(), status()), {}, []),
    "away": ((status(), None, status()), {}, ["e2 does not answer"]),
    "no_leader": ((status(), status(leader=0), status()), {}, ["e2 knows no leader"]),
    "two_leaders": ((status(), status(leader=8), status()), {}, ["members follow different leaders"]),
    "behind": (
        (status(raftAppliedIndex=9000), status(raftAppliedIndex=9000), status()),
        {},
        ["e3 is 8950 changes behind"],
    ),
    "full": ((status(errors=["NOSPACE"]), status(), status()), {}, ["e1: NOSPACE"]),
    "old_one": ((status(), status(), status()), {"phase": "between", "name": "e1"}, [f"e1 runs {OLD} and not {NEW}"]),
    "others_come_later": ((status(NEW), status(), status()), {"phase": "between", "name": "e1"}, []),
    "not_all": (
        (status(NEW), status(NEW), status(storage="3.7")),
        {"phase": "after"},
        [f"e3 runs {OLD} and not {NEW}"],
    ),
    "goes_back": (
        (status(NEW), status(NEW), status(NEW, back="3.6")),
        {"phase": "after"},
        ["e3 still goes back to 3.6"],
    ),
    "storage": (
        (status(NEW), status(NEW), status(NEW, "3.6")),
        {"phase": "after"},
        ["the storage of e3 is still that of 3.6"],
    ),
    "done": ((status(NEW), status(NEW), status(NEW)), {"phase": "after"}, []),
}


@pytest.mark.parametrize("case", LACKING)
def test_members_are_one_cluster_or_it_is_said_why_not(case):
    statuses, request, lacking = LACKING[case]
    assert problems(*statuses, **request) == lacking


@pytest.mark.parametrize("answer", ["", "null", "no json", '[{"Endpoint": 1}]'])
def test_answer_that_is_none_names_all_members(answer):
    seen = cluster.read(answer, MEMBERS)
    assert len([*cluster.problems(seen, MEMBERS, cluster.Request(NEW, cluster.Phase.BEFORE, ""))]) == len(MEMBERS)


WAYS = {
    "on": ((status(), status(), status()), NEW, []),
    "same": ((status(), status(), status()), OLD, []),
    "back": ((status(NEW), status(NEW), status(NEW)), OLD, ["enable", "3.6"]),
    # The cluster's version follows in some seconds, and then an older member would not start.
    "back_just_after_the_way_on": (
        (status(NEW, "3.6"), status(NEW, "3.6"), status(NEW, "3.6")),
        OLD,
        ["enable", "3.6"],
    ),
    "enabled_already": ((status(NEW, back="3.6"), status(NEW, back="3.6"), status(NEW, back="3.6")), OLD, []),
    "cut_on_the_way_back": ((status(back="3.6"), status(NEW, "3.6", back="3.6"), status(back="3.6")), OLD, []),
    "cut_on_the_way_on": ((status(), status(NEW, "3.6"), status()), OLD, []),
    "ends_by_itself": ((status(back="3.6"), status(back="3.6"), status(back="3.6")), OLD, []),
    "on_again": ((status(back="3.6"), status(NEW, "3.6", back="3.6"), status(back="3.6")), NEW, ["cancel"]),
    "an_older_one_that_has_no_storage_version": ((status("3.5.35", storage=""), status(), status()), OLD, []),
}


@pytest.mark.parametrize("case", WAYS)
def test_etcd_is_let_go_back_once_and_only_where_that_is_wanted(case):
    statuses, version, words = WAYS[case]
    assert cluster.action(cluster.read(printed(*statuses), MEMBERS), version) == words


@pytest.fixture
def run(monkeypatch):
    """Run the module; etcdctl gives one answer after the other, the last one again and again."""
    answers, asked = [], []

    def etcdctl(_, words, **given):
        asked.append(words[1:])
        assert given["environ_update"] == {"ETCDCTL_ENDPOINTS": ",".join(MEMBERS.values())}
        if words[1] != "endpoint":
            return 0, "", ""
        return 0, answers.pop(0) if len(answers) > 1 else answers[0], ""

    monkeypatch.setattr(cluster.AnsibleModule, "run_command", etcdctl)
    monkeypatch.setattr(cluster.time, "sleep", lambda _: None)

    def call(*said, version=OLD, phase="before", **rest):
        answers[:], asked[:] = said, []
        result = ansible_modules.run(cluster, members=MEMBERS, version=version, phase=phase, **rest)
        return result, [words for words in asked if words[0] == "downgrade"]

    return call


BACK = [status(NEW)] * 3
READY = [status(NEW, "3.6", back="3.6")] * 3


def test_way_back_waits_until_the_older_release_can_read_all(run):
    half = [READY[0], status(NEW, back="3.6"), READY[2]]
    result, asked = run(printed(*BACK), printed(*half), printed(*half), printed(*READY))
    assert (result["changed"], asked) == (True, [["downgrade", "enable", "3.6"]])
    again, asked = run(printed(*READY))
    assert (again["changed"], asked) == (False, [])


def test_storage_that_stays_newer_stops_the_upgrade(run):
    result, _ = run(printed(*BACK), timeout_s=0)
    assert result["failed"]
    assert "the storage of e1 is still that of 3.7" in result["msg"]
    assert "No further member is changed" in result["msg"]


def test_check_run_says_what_it_would_do_and_does_nothing(run):
    result, asked = run(printed(*BACK), _ansible_check_mode=True)
    assert (result["changed"], result["done"], asked) == (True, ["enable", "3.6"], [])
    result, asked = run(printed(*BACK), phase="after", _ansible_check_mode=True)
    assert (result["changed"], asked) == (False, [])


def test_member_that_does_not_come_back_stops_the_upgrade(run):
    result, _ = run(printed(status(), None, status()), phase="between", name="e2", timeout_s=0)
    assert result["failed"]
    assert result["msg"].startswith(
        "etcd after a member's restart: e2 does not answer; see `journalctl -u isthmus-etcd`"
    )


def test_etcd_that_does_not_go_back_yet_is_asked_again(monkeypatch):
    answers = [(1, "", "invalid downgrade target"), (0, "", "")]
    states = [BACK, BACK, BACK, READY]

    def etcdctl(_, words, **__):
        return answers.pop(0) if words[1] == "downgrade" else (0, printed(*states.pop(0)), "")

    monkeypatch.setattr(cluster.AnsibleModule, "run_command", etcdctl)
    monkeypatch.setattr(cluster.time, "sleep", lambda _: None)
    result = ansible_modules.run(cluster, members=MEMBERS, version=OLD, phase="before")
    assert (result["changed"], result["done"], answers) == (True, ["enable", "3.6"], [])


def test_reason_why_nobody_answers_is_reported(monkeypatch):
    refused = (1, "", '{"level": "warn"}\nError: authentication failed\n')
    monkeypatch.setattr(cluster.AnsibleModule, "run_command", lambda *_, **__: refused)
    result = ansible_modules.run(cluster, members=MEMBERS, version=OLD, phase="before", timeout_s=0)
    assert "e3 does not answer; Error: authentication failed; see" in result["msg"]


def test_refusal_of_etcd_is_reported_with_its_words(run, monkeypatch):
    answers = {
        "endpoint": (0, printed(*BACK), ""),
        "downgrade": (1, "", "Error: etcdserver: invalid downgrade target\n"),
    }
    monkeypatch.setattr(cluster.AnsibleModule, "run_command", lambda _, words, **__: answers[words[1]])
    result = ansible_modules.run(cluster, members=MEMBERS, version=OLD, phase="before", timeout_s=0)
    assert "etcdctl downgrade enable 3.6: Error: etcdserver: invalid downgrade target" in result["msg"]
