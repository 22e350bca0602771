import pytest

from isthmus.support.backoff import Backoff


def pauses(backoff, count):
    return [backoff.next_s() for _ in range(count)]


@pytest.mark.parametrize(
    ("spread", "lowest"), [(0.5, [0.5, 1.0, 2.0, 2.5, 2.5]), (1.0, [0.0, 0.0, 0.0, 0.0, 0.0]), (0.0, [1, 2, 4, 5, 5])]
)
def test_pauses_grow_to_the_limit_and_are_drawn_from_their_upper_part(spread, lowest):
    assert pauses(Backoff(1, 5, spread=spread, draw=max), 5) == [1, 2, 4, 5, 5]
    assert pauses(Backoff(1, 5, spread=spread, draw=min), 5) == lowest


def test_growth_is_the_loops_choice():
    assert pauses(Backoff(2, 5, growth=1.5, draw=max), 4) == [2, 3, 4.5, 5]


def test_success_begins_with_the_first_pause():
    backoff = Backoff(1, 5, draw=max)
    assert pauses(backoff, 3) == [1, 2, 4]
    backoff.reset()
    assert backoff.next_s() == 1


def test_two_that_failed_together_do_not_try_together():
    first, second = (pauses(Backoff(1, 60), 8) for _ in range(2))
    assert first != second
    assert all(2**n / 2 <= pause <= 2**n for n, pause in enumerate(first[:6]))
