"""What the daemon and who follows Services say to one another, and how the daemon learns of the other's end."""

import os
import socket
from threading import Thread

import pytest

from isthmus.network.api.fields import FieldError
from isthmus.network.bounds import UID_MAX
from isthmus.network.logins.followers import Followers
from isthmus.network.logins.orders import MESSAGE_BYTES, Operation, Order, check_answer, encode_answer, read_order

ALICE, BOB = 2001, 2002


@pytest.mark.parametrize(("operation", "descriptors"), [(Operation.FOLLOW, 1), (Operation.UNFOLLOW, 0)])
def test_order_is_read_as_it_was_written(operation, descriptors):
    for uid in (1, UID_MAX):
        order = Order(operation, uid)
        assert read_order(order.encode(), descriptors) == order
        assert len(order.encode()) < MESSAGE_BYTES


@pytest.mark.parametrize(
    ("message", "descriptors"),
    [
        (b"", 0),
        (b"\xff", 0),
        (b"[]", 0),
        (b'{"op": "unfollow"}', 0),
        (b'{"op": "end", "uid": 2001}', 0),
        (b'{"op": "unfollow", "uid": 0}', 0),
        (b'{"op": "unfollow", "uid": -1}', 0),
        (b'{"op": "unfollow", "uid": 4294967295}', 0),
        (b'{"op": "unfollow", "uid": true}', 0),
        (b'{"op": "unfollow", "uid": "2001"}', 0),
        (b'{"op": "unfollow", "uid": 2001, "uid": 2002}', 0),
        (b'{"op": "unfollow", "uid": 2001, "path": "/"}', 0),
        (b'{"op": "unfollow", "uid": 2001}', 1),
        (b'{"op": "follow", "uid": 2001}', 0),
        (b'{"op": "follow", "uid": 2001}', 2),
    ],
)
def test_what_is_no_order_is_refused(message, descriptors):
    with pytest.raises(FieldError):
        read_order(message, descriptors)


def test_answer_says_why_not():
    check_answer(encode_answer())
    with pytest.raises(OSError, match="why not"):
        check_answer(encode_answer("why not"))
    assert len(encode_answer("\u00e4" * 10_000)) <= MESSAGE_BYTES
    with pytest.raises(OSError, match="makes no sense"):
        check_answer(b'{"done": true}')


class Program:
    """Answers as it was set to, at a real socket."""

    def __init__(self, path):
        self.path, self.heard, self.why, self.started = path, [], "", 0
        self.connection = None

    def start(self):
        self.started += 1
        self.path.unlink(missing_ok=True)
        self.listening = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.listening.bind(str(self.path))
        self.listening.listen()
        Thread(target=self._serve, daemon=True).start()

    def _serve(self):
        with self.listening:
            self.connection, _ = self.listening.accept()
        while True:
            message, descriptors, _, _ = socket.recv_fds(self.connection, MESSAGE_BYTES, 4)
            if not message:
                return
            self.heard.append(
                (
                    read_order(message, len(descriptors)),
                    [os.readlink(f"/dev/fd/{descriptors[0]}")] if descriptors else [],
                )
            )
            for each in descriptors:
                os.close(each)
            self.connection.send(encode_answer(self.why))

    def end(self):
        self.connection.shutdown(socket.SHUT_RDWR)


@pytest.fixture
def program(tmp_path):
    return Program(tmp_path / "socket")


@pytest.fixture
def followers(tmp_path, program):
    for uid in (ALICE, BOB):
        (tmp_path / str(uid)).mkdir()
        (tmp_path / str(uid) / "netns").write_text("")
    return Followers(tmp_path, program.start, program.path)


def test_daemon_hands_over_the_pods_network_and_starts_the_program_once(followers, program, tmp_path):
    for uid in (ALICE, BOB):
        followers.follow(uid)
    followers.unfollow(ALICE)
    followers.unfollow(ALICE)
    networks = [[str(tmp_path / str(uid) / "netns")] for uid in (ALICE, BOB)]
    assert program.heard == [
        (Order(Operation.FOLLOW, ALICE), networks[0]),
        (Order(Operation.FOLLOW, BOB), networks[1]),
        (Order(Operation.UNFOLLOW, ALICE), []),
    ]
    assert followers.followed() == {BOB}
    assert program.started == 1


def test_refusal_is_an_error_and_keeps_the_others(followers, program):
    followers.follow(ALICE)
    program.why = "no"
    with pytest.raises(OSError, match="no"):
        followers.follow(BOB)
    assert followers.followed() == {ALICE}


def test_end_of_the_program_is_the_end_of_all(followers, program, caplog):
    followers.follow(ALICE)
    program.end()
    assert followers.followed() == frozenset()
    assert "has ended" in caplog.text
    followers.follow(BOB)
    assert followers.followed() == {BOB}
    assert program.started == 2


def test_pod_that_is_gone_is_an_error(followers, program):
    with pytest.raises(FileNotFoundError):
        followers.follow(9)
    assert program.started == 0


def test_program_that_does_not_begin_is_asked_for_once_in_a_while(followers):
    begins = followers._start
    followers._start = lambda: (_ for _ in ()).throw(OSError("systemctl: no"))
    for why in ("systemctl: no", "has just failed"):
        with pytest.raises(OSError, match=why):
            followers.follow(ALICE)
    followers._start = begins
    followers._pause_s = 0
    followers.follow(ALICE)
    assert followers.followed() == {ALICE}
