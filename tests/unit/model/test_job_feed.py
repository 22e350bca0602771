"""What jobsd and kubelets say: differences of views, and lines that may be anything."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isthmus.model import job_feed
from isthmus.model.job_feed import Delta, Demand, FeedMessageError, Figures, Hello, Phase, Update, applied, difference

TEXT = st.text(max_size=8)
ROWS = st.dictionaries(st.integers(1, 9).map(str), st.tuples(TEXT, TEXT), max_size=6)


@given(st.lists(st.tuples(ROWS, st.booleans()), min_size=1))
def test_any_sequence_of_views_ends_in_the_last_one(views):
    """However many views a reader misses: what it is sent next is the difference to the last one it was sent."""
    sent, known = None, None
    for rows, is_sent in views:
        if is_sent:
            update = Update(0, 0, jobs=difference(sent, rows))
            known, sent = applied(known, job_feed.read_update(job_feed.write_update(update)).jobs), rows
            assert known == rows
    assert known == sent


@given(ROWS)
def test_nothing_new_is_no_change(rows):
    assert not difference(rows, dict(rows))
    assert difference(None, rows)


def test_change_of_nothing_is_refused():
    with pytest.raises(FeedMessageError, match="before there was anything"):
        applied(None, Delta({"1": ("x",)}))


@given(st.recursive(st.none() | st.booleans() | st.integers() | TEXT, lambda inner: st.lists(inner, max_size=3)))
def test_values_of_another_kind_are_refused_and_nothing_else(value):
    lines = [{"pause_ms": value, "ask": 0}, {"schema": 1, "nonce": value, "uid": 1}, {"credential": value}, value]
    lines += [{"asked": 0, "age_ms": 0, "answered": True, "jobs": value}]
    lines += [{"asked": 0, "age_ms": 0, "answered": True, "jobs": {"rows": {"1": value}, "gone": [], "whole": True}}]
    readers = (job_feed.read_demand, job_feed.read_hello, job_feed.read_credential, job_feed.read_update)
    for line in lines:
        for reader in readers:
            try:
                reader(json.dumps(line).encode())
            except FeedMessageError:
                continue


@given(st.binary(max_size=40))
def test_bytes_that_are_no_message_are_refused(line):
    for reader in (job_feed.read_demand, job_feed.read_hello, job_feed.read_credential, job_feed.read_update):
        with pytest.raises(FeedMessageError):
            reader(line)


def test_text_of_users_stays_one_line():
    rows = {"7": ("7", "a\nb\u2028\ud800", '"}')}
    line = job_feed.write_update(Update(0, 0.5, jobs=difference(None, rows)))
    assert line.count(b"\n") == 1
    assert job_feed.read_update(line) == Update(0, 0.5, jobs=Delta(rows, whole=True))


def test_other_schema_and_a_refusal_say_so():
    with pytest.raises(FeedMessageError, match="schema 2"):
        job_feed.read_hello(b'{"schema": 2, "nonce": "a", "uid": 1}')
    with pytest.raises(FeedMessageError, match="refuses: not you"):
        job_feed.read_update(job_feed.write_error("not you"))


def test_figures_of_a_newer_kubelet_are_read_as_far_as_they_are_known():
    line = {"pause_ms": 0, "ask": 0, "figures": {"pods": {"Running": 2, "New": [1]}, "starts": {"new": 7}, "more": {}}}
    assert job_feed.read_demand(json.dumps(line).encode()).figures == Figures({Phase.RUNNING: 2})


@pytest.mark.parametrize(
    ("figures", "words"),
    [
        (7, "no object"),
        ({"pods": {}}, "pods and starts"),
        ({"pods": {"Running": -1}, "starts": {}}, "pods are counts"),
        ({"pods": {"Running": job_feed.PODS_MOST}, "starts": {}}, "pods are counts"),
        ({"pods": {}, "starts": {"queue": [1]}}, "a count and milliseconds"),
        ({"pods": {}, "starts": {"queue": {"0": 1, "1": 2}}}, "a count and milliseconds"),
        ({"pods": {}, "starts": {"queue": [1, 1 << 53]}}, "a count and milliseconds"),
    ],
)
def test_figures_of_another_form_are_refused(figures, words):
    with pytest.raises(FeedMessageError, match=words):
        job_feed.read_demand(json.dumps({"pause_ms": 0, "ask": 0, "figures": figures}).encode())


def test_demand_without_figures_is_what_an_older_service_reads():
    assert job_feed.write_demand(Demand(1, 2)) == b'{"pause_ms":1000,"ask":2}\n'


def test_lines_are_read_as_they_were_written():
    assert job_feed.read_demand(job_feed.write_demand(Demand(2.5, 3))) == Demand(2.5, 3)
    assert job_feed.read_hello(job_feed.write_hello(Hello("ab12", 990))) == Hello("ab12", 990)
    assert job_feed.read_credential(job_feed.write_credential("MUNGE:x:")) == "MUNGE:x:"
