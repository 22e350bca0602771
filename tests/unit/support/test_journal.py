"""Lines for the journal: one datagram each, and nothing waits for who does not read."""

import socket

from isthmus.support.journal import syslog


def test_line_is_one_datagram(tmp_path):
    path = str(tmp_path / "log")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as log:
        log.bind(path)
        syslog("isthmus-some", path)("two\nlines")
        assert log.recv(99) == b"<28>isthmus-some: two lines"


def test_line_is_lost_where_nobody_listens_or_reads(tmp_path):
    path = str(tmp_path / "log")
    syslog("isthmus-some", path)("nobody")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as log:
        log.bind(path)
        for _ in range(1000):
            syslog("isthmus-some", path)("x" * 1000)
        assert log.recv(99)
