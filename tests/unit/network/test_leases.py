"""Leases end when their users have left."""

import os

from isthmus.network.state.leases import Idle, users_here


def test_lease_without_use_is_dropped():
    idle = Idle(60)
    assert idle.judge([1001], [], 0) == ()
    assert idle.judge([1001], [], 59) == ()
    assert idle.judge([1001], [], 60) == (1001,)


def test_process_of_the_user_starts_the_time_again():
    idle = Idle(60)
    idle.judge([1001], [], 0)
    idle.judge([1001], [1001], 50)
    assert idle.judge([1001], [], 70) == ()
    assert idle.judge([1001], [], 130) == (1001,)


def test_lease_taken_again_starts_the_time_again():
    idle = Idle(60)
    idle.judge([1001], [], 0)
    idle.judge([], [], 50)
    assert idle.judge([1001], [], 70) == ()


def test_users_of_this_host_are_seen():
    assert os.getuid() in users_here()


def test_what_is_no_process_is_passed_over(tmp_path):
    (tmp_path / "7").mkdir()
    (tmp_path / "self").mkdir()
    os.chown(tmp_path / "7", 1001, 1001)
    assert users_here(tmp_path) == {1001}
