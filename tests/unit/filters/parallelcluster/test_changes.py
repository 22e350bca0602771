import pytest

from isthmus.filters.parallelcluster.changes import Need, lines, need, plan, refusal


def row(needs="", policy="SUPPORTED", path="A.b"):
    return {"path": path, "old": "1", "new": "2", "needs": needs, "policy": policy, "remedy": "why", "reason": ""}


@pytest.mark.parametrize(
    ("needs", "policy", "wanted"),
    [
        ("", "SUPPORTED", Need.LIVE),
        ("", "RESIZE_UPDATE_STRATEGY_ON_REMOVE", Need.LIVE),
        ("", "QUEUE_UPDATE_STRATEGY", Need.DRAIN),
        ("action", "QUEUE_UPDATE_STRATEGY", Need.FLEET),
        ("action", "COMPUTE_FLEET_STOP", Need.FLEET),
        ("action", "LOGIN_NODES_POOL_STOP", Need.LOGIN),
        ("action", "COMPUTE_AND_LOGIN_NODES_STOP", Need.ALL),
        ("refused", "UNSUPPORTED", Need.NEW),
    ],
)
def test_need_of_a_change(needs, policy, wanted):
    assert need(row(needs, policy)) is wanted


def test_plan_names_the_hardest():
    reported = plan([row(), row("action", "COMPUTE_FLEET_STOP", "C.d"), row("", "QUEUE_UPDATE_STRATEGY")])
    assert reported["need"] == "fleet stop"
    assert lines(reported["changes"])[1] == "C.d: 1 -> 2 (fleet stop)"


def test_plan_of_nothing_needs_nothing():
    assert plan([]) == {"changes": [], "need": ""}
    assert not refusal(plan([]), stop_allowed=False)


@pytest.mark.parametrize(
    ("given", "allowed", "words"),
    [
        (row("refused"), True, "another cluster_name"),
        (row("action", "COMPUTE_FLEET_STOP"), False, "provider_parallelcluster_stop"),
        (row("action", "LOGIN_NODES_STOP"), True, "count: 0"),
    ],
)
def test_plan_that_must_wait_says_why(given, allowed, words):
    assert words in refusal(plan([given]), allowed)


@pytest.mark.parametrize("given", [row(), row("", "QUEUE_UPDATE_STRATEGY"), row("action", "COMPUTE_FLEET_STOP")])
def test_plan_goes_on(given):
    assert not refusal(plan([given]), stop_allowed=True)
