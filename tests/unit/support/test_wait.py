import logging

import pytest

from tests.support.wait import WaitError, stays, wait


class Clock:
    """Time that passes only while somebody sleeps."""

    def __init__(self):
        self.now = 0.0

    def sleep(self, seconds):
        self.now += seconds

    def monotonic(self):
        return self.now


@pytest.fixture
def clock(monkeypatch):
    made = Clock()
    monkeypatch.setattr("tests.support.wait.time", made)
    return made


@pytest.fixture
def waiting(clock):
    def run(states, **options):
        remaining = iter(states)
        last = states[-1]
        return wait(lambda: next(remaining, last), interval_s=1, **options), clock.now

    return run


def test_ready_at_once_does_not_pause(waiting):
    assert waiting(["up"]) == ("up", 0)


def test_waits_until_ready(waiting):
    assert waiting([1, 2, 3], ready=lambda state: state == 3) == (3, 2)


def test_error_ends_the_wait(waiting):
    with pytest.raises(WaitError, match="never become ready: FAILED"):
        waiting(["RUNNING", "FAILED", "DONE"], ready=lambda s: s == "DONE", error=lambda s: s == "FAILED")


def test_timeout_reports_the_last_state(waiting):
    with pytest.raises(WaitError, match=r"not ready after 3 s: down"):
        waiting(["down"], ready=lambda state: state == "up", timeout_s=3)


def test_one_look_even_without_time(waiting):
    assert waiting(["up"], timeout_s=0) == ("up", 0)


def test_only_changes_are_logged(waiting, caplog):
    caplog.set_level(logging.INFO, logger="tests.support.wait")
    waiting(["a", "a", "b", "b", "c"], ready=lambda state: state == "c")
    assert caplog.messages == ["a", "b", "c"]


def test_condition_that_holds_is_observed_to_the_end(clock):
    assert stays(lambda: clock.now, lambda now: now < 5, seconds=4.5, because="of the test", interval_s=2) == 4.5


def test_condition_that_ends_is_an_error_with_its_reason(clock):
    with pytest.raises(WaitError, match=r"did not hold for 3 s \(it would come by then\); after 2\.0 s: 2\.0"):
        stays(lambda: clock.now, lambda now: now < 2, seconds=3, because="it would come by then", interval_s=1)
