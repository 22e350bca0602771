import pytest

from isthmus.supervisor.containers.backoff import BackOff
from isthmus.supervisor.containers.container import restarts


def test_pauses_double_to_five_minutes():
    back_off = BackOff()
    assert [back_off.pause_s(1) for _ in range(8)] == [0, 10, 20, 40, 80, 160, 300, 300]


def test_container_that_ran_long_begins_again():
    back_off = BackOff()
    for _ in range(5):
        back_off.pause_s(1)
    assert [back_off.pause_s(599), back_off.pause_s(600), back_off.pause_s(1)] == [160, 0, 10]


@pytest.mark.parametrize(
    ("policy", "code", "reported"),
    [
        ("Always", 0, True),
        ("Always", 1, True),
        ("OnFailure", 0, False),
        ("OnFailure", 137, True),
        ("Never", 0, False),
        ("Never", 1, False),
    ],
)
def test_restart_policy(policy, code, reported):
    assert restarts(policy, code) is reported
