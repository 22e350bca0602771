import time

import pytest

from tests.unit.spank.conftest import ONE_BUILD
from tests.unit.spank.fake_daemon import Held, ok, refusal

# The words, the option, the prolog's note, and whether there is something to release.
CASES = [
    ("", None, None, False),
    ("", "none", None, False),
    ("default=private", "none", None, False),
    ("default=private", None, "none", False),
    ("default=none", None, "private", True),
    ("default=nonsense", None, "private", True),
    ("default=private", None, None, True),
    ("", "flannel", None, True),
]


@pytest.mark.parametrize(("words", "option", "note", "releases"), CASES)
def test_network_is_released_where_there_may_be_one(plugin, daemon, words, option, note, releases):
    fake = daemon(**({"job_release": ok()} if releases else {}))
    if note:
        plugin.record("7.driver", note)
    plugin.record("7.error", "of the prolog")
    result = plugin.run("epilog", *words.split(), **({} if option is None else {"HOST_OPTION": option}))
    assert (result.reported, fake.calls) == (["rc=0"], int(releases))
    assert (plugin.record("7.driver"), plugin.record("7.error")) == (None, None)


@pytest.mark.parametrize("answer", [refusal("etcd is gone", "unavailable"), b"junk\n"])
def test_daemon_that_does_not_release_fails_no_node(plugin, daemon, answer):
    daemon(job_release=answer)
    result = plugin.run("epilog", HOST_OPTION="")
    assert result.reported == ["rc=0"]
    assert "job 7: its pod network is left to the daemon's garbage collection: " in result.errors[0]


@ONE_BUILD
def test_daemon_that_is_silent_fails_no_node(plugin, daemon):
    daemon(job_release=Held())
    assert plugin.run("epilog", HOST_OPTION="").reported == ["rc=0"]


def test_daemon_that_is_dead_holds_up_nothing(plugin):
    begun_s = time.monotonic()
    assert plugin.run("epilog", HOST_OPTION="").reported == ["rc=0"]
    # It takes milliseconds; the rest is for a busy machine.
    assert time.monotonic() - begun_s < 10


def test_epilog_without_a_job_does_nothing(plugin, daemon):
    fake = daemon()
    assert plugin.run("epilog", HOST_REFUSES="1", HOST_OPTION="").reported == ["rc=0"]
    assert fake.calls == 0
