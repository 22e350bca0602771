"""unmunge's answers, from programs in its place; tests/integration/test_jobsd.py asks a real munged."""

import os

import pytest

from isthmus.clients import munge
from isthmus.clients.munge import MungeError, Opened


@pytest.fixture
def unmunge(tmp_path, monkeypatch):
    def answer(text, status=0, stderr=""):
        path = tmp_path / "unmunge"
        path.write_text(f"#!/bin/sh\ncat <<'END'\n{text}\nEND\necho '{stderr}' >&2\nexit {status}\n")
        path.chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")

    return answer


def test_good_one_says_who_wrote_what(unmunge):
    unmunge("STATUS:          Success (0)\nUID:             ??? (54321)\n\nUID: root (0)\n\nwords")
    assert munge.opened("x") == Opened(54321, "UID: root (0)\n\nwords")


@pytest.mark.parametrize(
    "text",
    ["", "UID: root (0)\n\nx", "STATUS: Success (0)\nUID: root\n\nx", "STATUS: Success (0)\n\nUID: root (0)\n\nx"],
)
def test_answer_that_is_none_is_refused(unmunge, text):
    unmunge(text)
    with pytest.raises(MungeError, match="cannot be read"):
        munge.opened("x")


def test_refusal_has_the_reason_and_not_what_was_written(unmunge):
    unmunge("STATUS:          Replayed credential (17)\nUID:  alice (1001)\n\na secret", 17)
    with pytest.raises(MungeError, match=r"not good: Replayed credential \(17\)$"):
        munge.opened("x")


def test_refusal_without_a_status_has_its_words(unmunge):
    unmunge("", 18, "unmunge: Error: Unauthorized credential for client")
    with pytest.raises(MungeError, match="not good: Unauthorized credential for client"):
        munge.opened("x")
