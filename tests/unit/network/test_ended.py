"""Addresses are given back when a job has ended, and never before."""

from isthmus.network.state.ended import GRACE_S, Judgement, Missing, judge


def rounds(*answers, known=None):
    """Judge answers GRACE_S apart; return what each ended."""
    seen, ended = Judgement(), []
    for number, holding in enumerate(answers):
        seen = judge(known or {1: 10, 2: 20}, frozenset(holding), seen.missing, number * GRACE_S)
        ended.append(dict(seen.ended))
    return ended


def test_job_missed_twice_has_ended():
    assert rounds({1, 2}, {2}, {2}) == [{}, {}, {1: 10}]


def test_job_missed_once_lives():
    assert rounds({1}, {1, 2}, {1}) == [{}, {}, {}]


def test_answers_close_together_count_once():
    first = judge({1: 10}, frozenset(), {}, 100.0)
    soon = judge({1: 10}, frozenset(), first.missing, 100.0 + GRACE_S / 2)
    assert not soon.ended
    assert judge({1: 10}, frozenset(), soon.missing, 100.0 + GRACE_S).ended == {1: 10}


def test_job_written_again_starts_again():
    first = judge({1: 10}, frozenset(), {}, 0.0)
    again = judge({1: 11}, frozenset(), first.missing, GRACE_S)
    assert again == Judgement({}, {1: Missing(GRACE_S, 11)})


def test_login_pods_are_not_slurms():
    assert rounds(set(), set(), known={63 << 26: 10}) == [{}, {}]


def test_job_of_another_cluster_part_is_left_alone():
    assert judge({}, frozenset({5}), {7: Missing(0.0, 1)}, 100.0) == Judgement()
