"""What Ansible sees of a plan: found versions in, lines and hosts out."""

import pytest

from isthmus.filters.upgrade import table

GROUPS = {"controller": ["ctl"], "compute": ["c1", "c2"], "login": ["login"], "etcd": ["ctl"]}
OLD = "24.11.5-4"


def reported(current, version=OLD, **rest):
    slurm = {"oldest": version, "newest": version, "held": True}
    return (
        {"slurm": slurm, "current": current, "database": "none", "widened": False}
        | {"etcd": "", "kubernetes": ""}
        | rest
    )


@pytest.fixture
def found():
    nodes = {"c1": {"version": "24.11.5", "reason": ""}, "c2": {"version": "24.11.5", "reason": "disk"}}
    return {
        "ctl": reported(["slurmctld", "slurmdbd"], database="current", etcd="3.6.14", nodes=nodes),
        "c1": reported(["slurmd"]),
        "login": reported(["sackd"]),
    }


def test_plan_of_found_versions(found):
    made = table.upgrade_plan(found, GROUPS, {"slurm": "25.05", "etcd": "3.6.14"})
    assert [(step["verb"], step["hosts"]) for step in made["steps"]] == [
        ("widen", ["ctl"]),
        ("controller", ["ctl"]),
        ("compute", ["c1"]),
        ("login", ["login"]),
        ("narrow", ["ctl"]),
    ]
    assert made["left"] == ["c2"]
    assert table.upgrade_hosts(made, ["compute", "login"]) == ["c1", "login"]


def test_own_drain_makes_a_node_due_and_anothers_does_not(found):
    found["ctl"]["nodes"]["c1"]["reason"] = f"isthmus: upgrade {OLD} 24.11"
    wanted = {"slurm": "24.11"}
    assert table.upgrade_hosts(table.upgrade_plan(found, GROUPS, wanted), "compute") == ["c1"]
    found["ctl"]["nodes"]["c1"]["reason"] = "isthmus: health: /home does not answer"
    assert table.upgrade_plan(found, GROUPS, wanted)["steps"] == []


def test_member_of_etcd_that_does_not_answer_is_refused(found):
    groups = {**GROUPS, "etcd": ["ctl", "e2"]}
    made = table.upgrade_plan(found, groups, {"etcd": "3.7.3"})
    assert made["steps"] == []
    assert "etcd on e2 does not answer" in made["refusals"][0]


def test_table_names_steps_refusals_and_who_is_left(found):
    lines = table.upgrade_table(table.upgrade_plan(found, GROUPS, {"slurm": "25.05"}))
    assert lines[0].split()[:4] == ["step", "hosts", "from", "to"]
    assert lines[2].split()[:4] == ["controller", "ctl", OLD, "25.05"]
    assert lines[-1] == "left for another run, as they do not answer: c2"
    refused = table.upgrade_table(table.upgrade_plan(found, GROUPS, {"slurm": "23.11"}))
    assert refused[0].startswith("refused: ctl, c1, login, c2 are newer than slurm_version 23.11")


def test_empty_table_says_so(found):
    groups = {**GROUPS, "compute": ["c1"]}
    assert table.upgrade_table(table.upgrade_plan(found, groups, {"slurm": "24.11"})) == ["Nothing is to be done."]


@pytest.mark.parametrize(
    ("version", "controller", "why"),
    [
        ("24.11.5-4", "26.05.5-1", ""),
        ("24.11.5-4+deb13u1", "24.11.5-4", ""),
        ("", "26.05.5-1", ""),
        ("26.05.5-1", "24.11.5-4", "newer than its controller's"),
        ("24.11.6-1", "24.11.5-4", "newer than its controller's"),
        ("22.05.8-4", "24.11.5-4", "too old for its controller's"),
        ("22.05.8-4", "30.05.1", "none of the releases"),
    ],
)
def test_node_beside_its_controller(version, controller, why):
    assert why in table.upgrade_mixed(version, controller)
    assert bool(why) == bool(table.upgrade_mixed(version, controller))


def test_way_back_takes_what_was_kept_while_daemons_stood_still(tmp_path):
    assert table.backup_part(str(tmp_path), "true") == str(tmp_path)
    (tmp_path / "stopped").mkdir()
    assert table.backup_part(str(tmp_path), "true") == str(tmp_path / "stopped")
    assert table.backup_part(str(tmp_path), False) == str(tmp_path)


def test_hosts_that_did_not_answer_are_not_among_the_found(found):
    hostvars = {"ctl": {"__upgrade_found": found["ctl"]}, "c1": {"__upgrade_found": {"unreachable": True}}, "c2": {}}
    assert set(table.upgrade_found(hostvars, {"all": ["ctl", "c1", "c2"]})) == {"ctl"}


def test_report_names_what_was_done_and_who_is_left(found):
    lines = table.upgrade_report(table.upgrade_plan(found, GROUPS, {"slurm": "25.05"}))
    assert "compute c1: done" in lines
    assert lines[-1].startswith("c2: left; run this again")
