"""The plan holds the fewest sacctmgr commands, and none where slurmdbd already agrees.

The rows are what sacctmgr 24.11 prints for the queries.
"""

from __future__ import annotations

from typing import Any

import pytest

from isthmus.filters.errors import InputError
from isthmus.filters.slurm.accounting import slurm_accounting_plan
from isthmus.filters.slurm.accounting_state import (
    ACCOUNT_FIELDS,
    ASSOCIATION_FIELDS,
    QOS_FIELDS,
    USER_FIELDS,
    slurm_accounting_queries,
)


def rows(fields: tuple[str, ...], *items: dict[str, str]) -> str:
    return "".join("|".join(item.get(field, "") for field in fields) + "\n" for item in items)


def association(account: str, user: str = "", parent: str = "", **values: str) -> dict[str, str]:
    return {
        "Cluster": "demo",
        "Account": account,
        "User": user,
        "ParentName": parent,
        "Fairshare": "1",
        **values,
    }


FRESH = {
    "accounts": rows(ACCOUNT_FIELDS, {"Account": "root", "Description": "default root account"}),
    "qos": rows(QOS_FIELDS, {"Name": "normal", "Priority": "0"}),
    "associations": "",
    "users": rows(USER_FIELDS, {"User": "root", "DefaultAccount": "root", "Cluster": "other"}),
}
LIVE = {
    "accounts": rows(
        ACCOUNT_FIELDS,
        {"Account": "root"},
        {"Account": "users", "Description": "all users", "Organization": "uni"},
        {"Account": "lab"},
    ),
    "qos": rows(
        QOS_FIELDS,
        {"Name": "normal", "Priority": "0"},
        {
            "Name": "high",
            "Priority": "10",
            "MaxTRESPerUser": "cpu=8,mem=2G",
            "MaxWall": "1-00:00:00",
            "GrpJobs": "9",
        },
    ),
    "associations": rows(
        ASSOCIATION_FIELDS,
        association("root", QOS="normal"),
        association("root", "root"),
        association("users", parent="root", GrpTRES="cpu=8"),
        association("users", "alice", QOS="high,normal", DefaultQOS="high", MaxJobs="2"),
        association("users", "alice", Partition="debug"),
        association("lab", parent="root"),
        association("lab", "alice"),
    ),
    "users": rows(USER_FIELDS, *[{"User": "alice", "DefaultAccount": "users", "Cluster": "demo"}] * 2),
}


WANTED: dict[str, Any] = {
    "qos": [{"name": "high", "priority": 10, "limits": {"MaxTRESPerUser": "cpu=8"}}],
    "accounts": [{"name": "lab", "parent": "users"}, {"name": "users", "description": "All users"}],
    "users": [{"name": "alice", "account": "users", "accounts": ["lab"], "qos": ["high"], "default_qos": "high"}],
}


def plan(current: dict[str, str], **desired: Any) -> list[str]:
    argvs = slurm_accounting_plan(current, {"cluster": "demo", **desired})
    assert all(argv[:2] == ["sacctmgr", "-i"] for argv in argvs)
    return [" ".join(argv[2:]) for argv in argvs]


def test_queries_ask_for_what_the_plan_reads() -> None:
    queries = slurm_accounting_queries("demo")
    assert queries.keys() == FRESH.keys()
    assert all(argv[:3] == ["sacctmgr", "-nP", "show"] for argv in queries.values())
    assert "WOPLimits" in queries["associations"]
    assert "cluster=demo" in queries["associations"]


def test_fresh_cluster_gets_everything_in_order() -> None:
    assert plan(FRESH, **WANTED) == [
        "add cluster demo",
        "add qos high Priority=10 MaxTRESPerUser=cpu=8",
        "add account users cluster=demo parent=root Description=All users",
        "add account lab cluster=demo parent=users",
        "add user alice cluster=demo account=users QOS=high DefaultQOS=high",
        "add user alice cluster=demo account=lab QOS=high DefaultQOS=high",
    ]


@pytest.mark.parametrize(
    "desired",
    [
        {},
        {
            "qos": [{"name": "normal"}],
            "accounts": [{"name": "users"}],
            "users": [{"name": "alice", "account": "users"}],
        },
        {"qos": [{"name": "HIGH", "priority": 10, "limits": {"MaxTRESPerUser": "mem=2048,cpu=8"}}]},
        {"qos": [{"name": "high", "limits": {"MaxTRESPerUser": "mem=2G", "MaxWall": "1-0", "GrpJobs": "9"}}]},
        {"qos": [{"name": "high", "limits": {"GrpWall": -1, "GrpTRES": -1, "MaxJobsPerUser": "-1"}}]},
        {"qos": [{"name": "high", "limits": {"GrpWall": "UNLIMITED", "GrpTRES": "cpu=-1"}}]},
        {"accounts": [{"name": "users", "description": "All Users", "organization": "Uni", "parent": "root"}]},
        {"accounts": [{"name": "users", "limits": {"GrpTRES": "cpu=8", "Fairshare": 1}}]},
        {"users": [{"name": "alice", "account": "users", "qos": ["normal", "high"], "default_qos": "high"}]},
        {"users": [{"name": "bob", "state": "absent"}]},
    ],
)
def test_plan_is_empty_when_the_cluster_agrees(desired: dict[str, Any]) -> None:
    assert plan(LIVE, **desired) == []


@pytest.mark.parametrize(
    ("qos", "command"),
    [
        ({"name": "normal", "priority": 5}, "normal set Priority=5"),
        ({"name": "high", "limits": {"MaxTRESPerUser": "cpu=9,mem=2G"}}, "high set MaxTRESPerUser=cpu=9"),
        ({"name": "high", "limits": {"MaxTRESPerUser": "mem=-1"}}, "high set MaxTRESPerUser=mem=-1"),
        ({"name": "high", "limits": {"MaxTRESPerUser": -1}}, "high set MaxTRESPerUser=cpu=-1,mem=-1"),
        ({"name": "high", "limits": {"MaxTRESPerUser": "mem=3G"}}, "high set MaxTRESPerUser=mem=3072M"),
        ({"name": "high", "limits": {"GrpTRES": "gres/gpu:a100=2"}}, "high set GrpTRES=gres/gpu:a100=2"),
        ({"name": "high", "limits": {"MaxWall": "90"}}, "high set MaxWall=90"),
        ({"name": "high", "limits": {"MaxWall": "UNLIMITED"}}, "high set MaxWall=-1"),
        ({"name": "high", "limits": {"GrpJobs": 0}}, "high set GrpJobs=0"),
        ({"name": "high", "limits": {"GrpJobs": -1}}, "high set GrpJobs=-1"),
    ],
)
def test_qos_that_differs_is_modified(qos: dict[str, Any], command: str) -> None:
    assert plan(LIVE, qos=[qos]) == [f"modify qos where name={command}"]


@pytest.mark.parametrize(
    ("account", "command"),
    [
        ({"name": "users", "description": "Staff"}, "name=users set Description=Staff"),
        ({"name": "lab", "parent": "users"}, "name=lab cluster=demo set parent=users"),
        ({"name": "users", "limits": {"GrpTRES": "cpu=4"}}, "name=users cluster=demo set GrpTRES=cpu=4"),
        ({"name": "lab", "limits": {"Fairshare": 3}}, "name=lab cluster=demo set Fairshare=3"),
    ],
)
def test_account_that_differs_is_modified(account: dict[str, Any], command: str) -> None:
    assert plan(LIVE, accounts=[account]) == [f"modify account where {command}"]


@pytest.mark.parametrize(
    ("user", "commands"),
    [
        ({"account": "users", "qos": ["high"]}, ["modify {} account=users set QOS=high"]),
        ({"account": "users", "default_qos": "normal"}, ["modify {} account=users set DefaultQOS=normal"]),
        ({"account": "users", "limits": {"MaxJobs": -1}}, ["modify {} account=users set MaxJobs=-1"]),
        ({"account": "lab"}, ["modify {} set DefaultAccount=lab"]),
        ({"account": "lab", "state": "absent"}, ["delete {}"]),
    ],
)
def test_user_that_differs_is_modified(user: dict[str, Any], commands: list[str]) -> None:
    expected = [command.format("user where name=alice cluster=demo") for command in commands]
    assert plan(LIVE, users=[{"name": "alice", **user}]) == expected


def test_new_default_account_comes_after_its_association() -> None:
    accounts, users = [{"name": "new"}], [{"name": "alice", "account": "new"}]
    assert plan(LIVE, accounts=accounts, users=users) == [
        "add account new cluster=demo parent=root",
        "add user alice cluster=demo account=new",
        "modify user where name=alice cluster=demo set DefaultAccount=new",
    ]


@pytest.mark.parametrize(
    ("desired", "message"),
    [
        ({"cluster": ""}, "the accounting plan lacks cluster"),
        ({"user": []}, "unknown key of the accounting plan: 'user'; did you mean 'users'"),
        ({"accounts": [{"description": "x"}]}, "slurm_accounts lacks name"),
        ({"accounts": [{"name": "a", "parnet": "b"}]}, "'parnet'; did you mean 'parent'"),
        ({"accounts": [{"name": "a"}, {"name": "A"}]}, "a is in slurm_accounts twice"),
        (
            {"accounts": [{"name": "a", "parent": "user"}]},
            "unknown parent of account a: 'user'; did you mean 'users'",
        ),
        (
            {"accounts": [{"name": "a", "parent": "b"}, {"name": "b", "parent": "a"}]},
            "account a is above itself",
        ),
        ({"accounts": [{"name": "a", "parent": "a"}]}, "account a is above itself"),
        ({"accounts": [{"name": "a", "description": "x|y"}]}, "Description of account a"),
        (
            {"accounts": [{"name": "a", "limits": {"MaxTRESPerUser": "cpu=1"}}]},
            "unknown key of limits of account a",
        ),
        (
            {"accounts": [{"name": "a", "limits": {"Fairshare": -1}}]},
            "Fairshare of account a cannot be unset",
        ),
        ({"qos": [{"name": "q", "priority": "x"}]}, "Priority of QOS q is 'x'"),
        ({"qos": [{"name": "q", "limits": {"MaxTresPerUser": 1}}]}, "did you mean 'MaxTRESPerUser'"),
        ({"qos": [{"name": "q", "limits": {"GrpTRES": 8}}]}, "GrpTRES of QOS q has '8'; write e.g. cpu=8"),
        ({"qos": [{"name": "q", "limits": {"GrpTRES": "cpu=many"}}]}, "GrpTRES of QOS q has 'cpu=many'"),
        ({"qos": [{"name": "q", "limits": {"GrpTRES": ","}}]}, "GrpTRES of QOS q has ','"),
        ({"qos": [{"name": "q", "limits": {"MaxWall": 3600}}]}, "MaxWall of QOS q is not text but 3600"),
        ({"qos": [{"name": "q", "limits": {"MaxWall": "1 day"}}]}, "MaxWall of QOS q is no time"),
        ({"qos": [{"name": "q", "limits": {"GrpJobs": True}}]}, "GrpJobs of QOS q is True"),
        ({"qos": [{"name": "q", "limits": {"GrpJobs": -2}}]}, "GrpJobs of QOS q is -2"),
        ({"users": [{"name": "u"}]}, "user u has no account"),
        (
            {"users": [{"name": "u", "account": "uesrs"}]},
            "unknown account of user u: 'uesrs'; did you mean 'users'",
        ),
        ({"users": [{"name": "u", "account": "users", "accounts": ["x"]}]}, "unknown account of user u: 'x'"),
        ({"users": [{"name": "u", "account": "users", "qos": ["hihg"]}]}, "unknown QOS of user u: 'hihg'"),
        ({"users": [{"name": "u", "account": "users", "default_qos": "x"}]}, "unknown QOS of user u: 'x'"),
        (
            {"users": [{"name": "u", "account": "users", "qos": ["high"], "default_qos": "normal"}]},
            "qos of user u lacks the default_qos normal",
        ),
        ({"users": [{"name": "u", "state": "gone"}]}, "unknown state of user u: 'gone'"),
    ],
)
def test_plan_refuses(desired: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as caught:
        plan(LIVE, **desired)
    assert message in str(caught.value)


@pytest.mark.parametrize("query", ["accounts", "qos", "associations", "users"])
def test_plan_refuses_the_output_of_another_query(query: str) -> None:
    with pytest.raises(InputError, match=f"the {query} have a line with 2 fields"):
        plan({**LIVE, query: "a|b\n"})
