"""What is said of etcd's space."""

import pytest

from isthmus.clients.etcd.store import Space
from isthmus.network.state.store import space_problem


@pytest.mark.parametrize(
    ("space", "reported"),
    [
        (Space(79, 100, is_full=False), ""),
        (Space(10, 0, is_full=False), ""),
        (Space(85, 100, is_full=False), "85% of its quota"),
        (Space(10, 100, is_full=True), "NOSPACE"),
    ],
)
def test_space_is_reported_before_it_ends(space, reported):
    assert reported in space_problem(space)
    assert bool(reported) == ("alarm disarm" in space_problem(space))
