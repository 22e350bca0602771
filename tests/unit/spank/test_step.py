import fcntl
import os

import pytest

from tests.unit.spank.conftest import LIMIT_S, ONE_BUILD, READY
from tests.unit.spank.fake_daemon import Held, ok, refusal

EXTERN, BATCH, INTERACTIVE = "4294967292", "4294967291", "4294967290"
REACH = "cannot be reached"
RAN, FAILED = "task=0", "task=1"


def step(plugin, words="", option=None, note=None, **environment):
    if note:
        plugin.record("7.driver", note)
    return plugin.run("step", *words.split(), **({} if option is None else {"HOST_OPTION": option}), **environment)


@pytest.mark.parametrize("id_", ["0", BATCH, INTERACTIVE])
def test_tasks_enter_and_pmix_listens_on_the_leg(plugin, daemon, id_):
    fake = daemon(job_get=READY)
    result = step(plugin, option="", HOST_STEP=id_)
    assert {"pmix=il4096", "setns net", RAN} <= set(result.reported)
    assert fake.requests == [{"version": 1, "op": "job_get", "job": 7}]
    assert result.logged == ""


@pytest.mark.parametrize(("option", "note"), [("private", None), ("", "private"), (None, "private")])
def test_extern_step_stays_out(plugin, daemon, option, note):
    fake = daemon()
    result = step(plugin, "default=private", option, note, HOST_STEP=EXTERN)
    assert {"pmix=", RAN} <= set(result.reported)
    assert (fake.calls, "setns net" in result.reported) == (0, False)


# The words, the option, the prolog's note: a job without the option runs as without the plugin, the daemon dead or not.
@pytest.mark.parametrize("alive", [True, False], ids=["alive", "dead"])
@pytest.mark.parametrize(
    ("words", "option", "note"),
    [
        ("", None, None),
        ("default=none partition=gpu:private user=bob:private", None, None),
        ("default=private", "none", None),
        ("default=private", None, "none"),
        ("default=private", "none", "private"),
    ],
)
def test_step_that_does_not_ask_makes_no_call(plugin, daemon, words, option, note, alive):
    calls = daemon() if alive else None
    result = step(plugin, words, option, note)
    assert result.reported == ["init=0", "option=0", "post_opt=0", "pmix=", RAN, "exit=0"]
    assert result.logged == ""
    assert not calls or calls.calls == 0


@pytest.mark.parametrize(
    ("words", "option", "note"),
    [("", "", None), ("", None, "private"), ("", None, "flannel"), ("default=private", None, None)],
)
def test_step_that_asks_fails_while_the_daemon_is_dead(plugin, words, option, note):
    result = step(plugin, words, option, note)
    assert FAILED in result.reported
    assert {"init=0", "post_opt=0", "exit=0", "pmix="} <= set(result.reported)
    assert "setns net" not in result.reported
    assert result.errors[-1].startswith("isthmus: job 7 cannot use its pod network on ")
    assert REACH in result.errors[-1]


def test_absent_network_by_default_means_did_not_ask(plugin, daemon):
    daemon(job_get=ok(state="absent"))
    result = step(plugin, "default=private")
    assert (RAN in result.reported, "setns net" in result.reported) == (True, False)
    assert result.errors == []


NEVER_ASKED = "none was made for it when it began; give --pod-network to sbatch or salloc"
FORGOTTEN = "the network daemon began again before it was made; submit the job again"


@pytest.mark.parametrize(
    ("option", "note", "why"),
    [("", None, NEVER_ASKED), ("", "none", NEVER_ASKED), (None, "private", FORGOTTEN), ("", "private", FORGOTTEN)],
)
def test_absent_network_of_a_step_that_asks_fails(plugin, daemon, option, note, why):
    daemon(job_get=ok(state="absent"))
    result = step(plugin, "", option, note)
    assert FAILED in result.reported
    assert why in result.errors[-1]


@pytest.mark.parametrize("words", ["", "default=private"])
def test_what_the_prolog_met_is_what_the_user_reads(plugin, daemon, words):
    daemon(job_get=ok(state="absent"))
    plugin.record("7.error", "the pod range is full")
    result = step(plugin, words, None if words else "")
    assert FAILED in result.reported
    assert result.errors[-1].endswith("so the task was not started: the pod range is full")


def test_what_the_prolog_met_is_read_while_the_daemon_is_dead(plugin):
    plugin.record("7.error", "the pod range is full")
    assert step(plugin, option="").errors[-1].endswith("so the task was not started: the pod range is full")


def test_network_that_came_late_is_entered(plugin, daemon):
    daemon(job_get=READY)
    plugin.record("7.error", "the daemon did not answer the prolog")
    assert RAN in step(plugin, option="").reported


def test_network_that_is_being_made_is_waited_for(plugin, daemon):
    fake = daemon(job_get=[ok(state="preparing"), ok(state="preparing"), READY])
    assert RAN in step(plugin, option="").reported
    assert len(fake.requests) == 3


@ONE_BUILD
def test_reserved_address_is_waited_for_longer(plugin, daemon):
    """The control plane that has it ends in order first."""
    # A tenth of a second is the longest pause between two looks.
    daemon(job_get=[*[ok(state="preparing")] * (12 * LIMIT_S + 10), READY])
    assert RAN in step(plugin, option="", HOST_JOB_ISTHMUS_RESERVATION="kubernetes").reported


@ONE_BUILD
def test_network_that_is_never_ready_fails_in_time(plugin, daemon):
    daemon(job_get=ok(state="preparing"))
    result = step(plugin, option="")
    assert FAILED in result.reported
    assert f"it was not ready within {LIMIT_S} s" in result.errors[-1]


@ONE_BUILD
def test_last_question_that_is_cut_off_accuses_nobody(plugin, daemon):
    daemon(job_get=[ok(state="preparing"), Held()])
    result = step(plugin, option="")
    assert FAILED in result.reported
    assert f"it was not ready within {LIMIT_S} s" in result.errors[-1]


@pytest.mark.parametrize("answer", [ok(state="failed", error="no free VNI"), refusal("no free VNI", "forbidden")])
def test_failure_is_reported_in_the_daemons_words(plugin, daemon, answer):
    daemon(job_get=answer)
    result = step(plugin, option="")
    assert FAILED in result.reported
    assert result.errors[-1].endswith("so the task was not started: no free VNI")


def test_other_network_than_the_jobs_is_refused(plugin, daemon):
    fake = daemon()
    result = step(plugin, option="flannel", note="private")
    assert FAILED in result.reported
    assert "its network is private, and a step cannot have flannel" in result.errors[-1]
    assert fake.calls == 0


def test_forged_option_is_refused(plugin, daemon):
    fake = daemon()
    result = step(plugin, option="x" * 5000)
    assert FAILED in result.reported
    assert f"there is no network {'x' * 31}; choose" in result.errors[-1]
    assert fake.calls == 0


def test_step_without_a_job_runs_as_it_is(plugin, daemon):
    fake = daemon()
    result = step(plugin, "default=private", HOST_REFUSES="1")
    assert RAN in result.reported
    assert fake.calls == 0


def test_step_drops_what_slurmd_did_not_close(plugin):
    """Of its descriptors slurmd closes the first 256 when it starts a step."""
    with open(os.devnull) as source:
        kept, dropped = (fcntl.fcntl(source, fcntl.F_DUPFD_CLOEXEC, least) for least in (200, 256))
        result = plugin.run("step", kept=(kept, dropped), HOST_COMMAND="ls /proc/self/fd")
        for each in (kept, dropped):
            os.close(each)
    assert str(kept) in result.reported
    assert str(dropped) not in result.reported
