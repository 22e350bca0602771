"""The PAM module, opened by PAM itself, with a strict daemon."""

import os
import pwd
import subprocess
import sys

import pytest

from tests.unit.spank.conftest import HANGS_S, HERE, symbols
from tests.unit.spank.fake_daemon import FakeDaemon, ok, refusal

USER = pwd.getpwuid(os.getuid()).pw_name
PHASES = {"pam_sm_acct_mgmt", "pam_sm_open_session", "pam_sm_close_session"}
DENIED = 6


@pytest.fixture
def module(built):
    return built["plain"].parent / "pam_isthmus.so"


@pytest.fixture
def login(module, tmp_path):
    """Log in with words for the module; give what was printed, by line, and the status."""

    def call(*words, user=USER):
        line = f"required {module} socket={tmp_path}/daemon.sock {' '.join(words)}\n"
        (tmp_path / "isthmus").write_text(f"account {line}session {line}")
        command = [sys.executable, HERE / "login.py", tmp_path, user]
        done = subprocess.run(command, capture_output=True, text=True, timeout=HANGS_S)
        assert "Traceback" not in done.stderr, done.stderr
        return done.stdout.splitlines(), done.returncode

    return call


@pytest.fixture
def daemon(tmp_path):
    started = []

    def start(**script):
        queues = {op: answers if isinstance(answers, list) else [answers] for op, answers in script.items()}
        started.append(FakeDaemon(tmp_path / "daemon.sock", queues))
        return started[-1]

    yield start
    for each in started:
        each.close()
        each.check()


def test_only_pams_symbols_are_exported(module):
    assert symbols(module, "--defined-only") == PHASES


def test_login_is_refused_with_the_daemons_reason(login, daemon):
    asked = daemon(login_prepare=refusal("all 156 login pods of login are taken"))
    reported, status = login("login")
    assert reported == [
        "reported: isthmus: you cannot log in here now: all 156 login pods of login are taken",
        f"pam_acct_mgmt: {DENIED}",
    ]
    assert status == DENIED
    assert asked.requests[0]["uid"] == os.getuid()


def test_login_is_refused_without_a_daemon(login, tmp_path):
    reported, status = login("login")
    assert status == DENIED
    assert reported[0].startswith("reported: isthmus: you cannot log in here now: the network daemon at ")
    assert reported[0].endswith("; an administrator must look at isthmus-networkd on this node")


@pytest.mark.parametrize(
    "answer",
    [
        ok(),
        ok(init=4711),
        ok(netns="/run/netns/isthmus-7"),
        ok(init=1, netns="/run/netns/isthmus-7"),
        ok(init=-4711, netns="/run/netns/isthmus-7"),
        ok(init="4711", netns="/run/netns/isthmus-7"),
        ok(init=4711, netns=""),
        ok(init=4711, netns="/" * 5000),
        {"version": 2, "ok": True},
        b"[]\n",
    ],
)
def test_answer_without_sense_lets_nobody_in(login, daemon, answer):
    daemon(login_prepare=answer)
    reported, status = login("login")
    assert status == DENIED
    assert len(reported) == 2


@pytest.mark.parametrize(
    "answer",
    [
        refusal("etcd does not answer"),
        # Nobody's process, and one that is in another network.
        ok(init=2**22 - 1, netns="/proc/self/ns/net"),
        ok(init=os.getpid(), netns="/dev/null"),
    ],
)
def test_session_that_is_not_in_the_pod_ends(login, daemon, answer):
    """Sshd would go on in the host's network."""
    daemon(login_prepare=ok(init=os.getpid(), netns="/proc/self/ns/net"), login_enter=answer)
    reported, status = login("login")
    assert reported == ["pam_acct_mgmt: 0"]
    assert status == 1


@pytest.mark.parametrize("words", [(), ("login", "debug"), ("socket=relative", "login")])
def test_wrong_words_let_nobody_in(login, words):
    reported, status = login(*words)
    assert status == DENIED
    assert "pam_isthmus" in reported[0]


def test_session_outside_of_jobs_stays_where_it_is(login):
    """Nobody is asked: the process is in no job's cgroup."""
    reported, status = login("job")
    assert reported == ["pam_acct_mgmt: 0", "pam_open_session: 0"]
    assert status == 0


def test_account_that_nobody_knows_is_refused(login):
    reported, status = login("login", user="nobody-of-that-name")
    assert "the account is not known here" in reported[0]
    assert status == DENIED


def test_program_of_the_pod_says_what_it_wants(module):
    program = module.parent / "isthmus_login"
    wrong = ((), ("/tmp",), ("/tmp", "1", "0"), ("/tmp", "0", "5"), ("/tmp", "x", "5"), ("/nonexistent", "1", "1"))
    for words in wrong:
        done = subprocess.run([program, *words], capture_output=True, text=True, timeout=HANGS_S)
        assert done.returncode == 1
        assert done.stderr.strip()
