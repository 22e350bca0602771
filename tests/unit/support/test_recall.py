"""What is made once, and what is forgotten."""

import pytest

from isthmus.support.recall import Memory


@pytest.fixture
def made():
    return []


@pytest.fixture
def recall(made):
    memory = Memory()

    def ask(key, source, *, ends=True):
        value = memory.recall(key, source, lambda one: made.append(one) or f"of {one}", source)
        if ends:
            memory.turn()
        return value

    return ask


def test_value_is_made_again_of_another_source_alone(recall, made):
    assert [recall("a", [1]), recall("a", [1]), recall("a", [2])] == ["of [1]", "of [1]", "of [2]"]
    assert made == [[1], [2]]


def test_what_a_round_did_not_ask_for_is_forgotten(recall, made):
    recall("a", 1, ends=False)
    recall("b", 1)
    recall("b", 1)
    assert recall("a", 1) == "of 1"
    assert made == [1, 1, 1]


def test_equal_value_of_last_time_stays():
    memory, first = Memory(), [1]
    assert memory.same("a", first) is first
    memory.turn()
    assert memory.same("a", [1]) is first
    memory.turn()
    assert memory.same("a", [2]) == [2]
    memory.turn()
    assert memory.same("a", [2]) is not first
