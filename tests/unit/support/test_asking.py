"""How long a client got no answer, of the times at which it got one."""

from tests.support.clusters.asking import gaps_between


def test_longest_gap_is_between_two_answers():
    assert gaps_between([10.0, 10.1, 14.35, 14.5, 16.0]) == {"longest_gap_s": 4.25, "whole_s": 6.0}


def test_silence_until_now_counts():
    assert gaps_between([10.0, 10.1, 100.0])["longest_gap_s"] == 89.9
