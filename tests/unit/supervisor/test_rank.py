"""What a rank decides from Slurm's words and from the container that it shares."""

import pytest

from isthmus.supervisor.runtime import rank
from isthmus.supervisor.runtime.rank_container import Entry


@pytest.mark.parametrize(
    ("counts", "alone"),
    [("1", True), ("1(x4)", True), ("1(x2),1", True), ("2", False), ("2(x2)", False), ("1,2", False), ("12", False)],
)
def test_ranks_are_alone_where_no_node_has_two(counts, alone):
    assert rank.is_alone({"SLURM_STEP_TASKS_PER_NODE": counts}) is alone


def test_rank_of_no_step_is_alone():
    assert rank.is_alone({})


def test_variables_are_the_containers_and_what_the_first_rank_has_otherwise():
    before = {"SLURM_PROCID": "0", "PATH": "/node", "ONLY_FIRST": "x", "BOTH": "b"}
    inside = {"SLURM_PROCID": "0", "PATH": "/image", "ONLY_FIRST": "x", "BOTH": "b", "IMAGE": "i"}
    own = {"SLURM_PROCID": "1", "PATH": "/node", "PMIX_RANK": "1", "BOTH": "b"}
    entry = Entry(None, 0, 0, 0, inside, before)
    expected = {"SLURM_PROCID": "1", "PATH": "/image", "BOTH": "b", "IMAGE": "i", "PMIX_RANK": "1"}
    assert entry.environment(own) == expected
    assert entry.environment(before) == inside
