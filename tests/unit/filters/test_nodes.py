import pytest

from isthmus.filters import nodes
from isthmus.filters.errors import InputError

KNOWN = ["c1", "c2", "c3"]
OURS = {"state": "drained", "reason": "isthmus: root: disk"}
THEIRS = {"state": "draining", "reason": "Kill task failed"}
IDLE = {"state": "idle", "reason": ""}


@pytest.mark.parametrize(
    ("wanted", "names"),
    [("c1", ["c1"]), ("c[1-2]", ["c1", "c2"]), ("c3,c1", ["c1", "c3"]), (["c1", "c2"], ["c1", "c2"])],
)
def test_selected_expands_ranges(wanted, names):
    assert nodes.nodes_selected(wanted, KNOWN) == names


def test_pattern_without_names_matches_no_host():
    assert nodes.nodes_pattern("", []) == []
    assert nodes.nodes_pattern("c[1-2]", KNOWN) == ["c1", "c2"]


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        ("", r"no nodes are named; add -e nodes=NAMES; group compute: c\[1-3\]"),
        ([], "no nodes are named"),
        ("c[1-9]", r"c\[4-9\]: not in the inventory's group compute; name some of c\[1-3\]"),
        ("ctl", "ctl: not in the inventory's group compute"),
        ("c[1-", "is no list of nodes"),
    ],
)
def test_selected_refuses_unknown_names(wanted, message):
    with pytest.raises(InputError, match=message):
        nodes.nodes_selected(wanted, KNOWN)


def test_added_are_compute_and_login_nodes():
    groups = {"compute": KNOWN, "login": ["login"], "controller": ["ctl"]}
    assert nodes.nodes_added("c[2-3],login", groups) == ["c2", "c3", "login"]
    assert nodes.nodes_added("", groups) == []


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        ("", r"no nodes are named; add -e nodes=NAMES; groups compute and login: c\[1-3\],login"),
        ("ctl", "ctl: not in the inventory's groups compute and login"),
    ],
)
def test_added_refuses_others(wanted, message):
    with pytest.raises(InputError, match=message):
        nodes.nodes_added(wanted, {"compute": KNOWN, "login": ["login"], "controller": ["ctl"]}, required=True)


def test_remaining_keeps_order():
    assert nodes.nodes_remaining(["c2"], ["c10", "c2", "c1"], "ctl") == ["c10", "c1"]


def test_remaining_refuses_controller():
    with pytest.raises(InputError, match="c1 is the controller"):
        nodes.nodes_remaining(["c1"], KNOWN, "c1")


def test_remaining_refuses_last_node():
    with pytest.raises(InputError, match="no compute node would remain"):
        nodes.nodes_remaining(KNOWN, KNOWN, "ctl")


@pytest.mark.parametrize("named", [["compute"], ["c[1-3]"], ["c1", "compute", "c3"]])
def test_partitions_lose_removed_nodes(named):
    partitions = [{"name": "batch", "nodes": named, "default": True}]
    assert nodes.nodes_partitions(partitions, {"compute": KNOWN}, ["c2"]) == [
        {"name": "batch", "nodes": ["c1", "c3"], "default": True}
    ]


def test_partitions_stay_when_nothing_is_removed():
    partitions = [{"name": "batch", "nodes": ["compute"]}]
    assert nodes.nodes_partitions(partitions, {"compute": KNOWN}, []) == partitions


def test_partitions_refuse_to_become_empty():
    with pytest.raises(InputError, match="partition small would have no node left"):
        nodes.nodes_partitions([{"name": "small", "nodes": ["c3"]}], {"compute": KNOWN}, ["c3"])


def test_drain_reason_names_owner_and_admin():
    assert nodes.nodes_drain_reason("new\n disk", "ann") == "isthmus: ann: new disk"


def test_drain_reason_refuses_nothing():
    with pytest.raises(InputError, match="a drain needs a reason"):
        nodes.nodes_drain_reason("  ", "ann")


def test_states_of_node_in_two_partitions():
    sinfo = "c1|idle|none\nc1|idle|none\nc2|draining*|isthmus: ann: a|b\n"
    assert nodes.nodes_states(sinfo) == {
        "c1": IDLE,
        "c2": {"state": "draining", "reason": "isthmus: ann: a|b"},
    }


@pytest.mark.parametrize(
    ("state", "changed"),
    [
        (IDLE, True),
        ({"state": "down", "reason": "Not responding"}, True),
        ({"state": "drained", "reason": "isthmus: ann: other"}, True),
        (OURS, False),
        (THEIRS, False),
    ],
)
def test_drain_plan_leaves_drains_of_others(state, changed):
    plan = nodes.nodes_drain_plan({"c1": state}, ["c1"], OURS["reason"])
    assert plan == ({"change": ["c1"], "keep": {}} if changed else {"change": [], "keep": {"c1": state["reason"]}})


def test_resume_plan_lifts_only_ours():
    plan = nodes.nodes_resume_plan({"c1": OURS, "c2": IDLE, "c3": THEIRS}, ["c1", "c2"])
    assert plan == {"change": ["c1"], "keep": {"c2": "idle"}}


def test_resume_plan_refuses_drain_of_others():
    with pytest.raises(InputError, match=r"drained by somebody else: c2 \(Kill task failed\)"):
        nodes.nodes_resume_plan({"c1": OURS, "c2": THEIRS}, ["c1", "c2"])


def test_plans_refuse_node_slurm_does_not_know():
    with pytest.raises(InputError, match="Slurm has no node c9"):
        nodes.nodes_resume_plan({}, ["c9"])
