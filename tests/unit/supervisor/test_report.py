import asyncio
import json

import pytest

from isthmus.supervisor.report import RETRY_S, Exit, Report
from tests.support import virtual_time
from tests.support.fakes import homes


@pytest.fixture
def report(tmp_path):
    made = Report(tmp_path / "report.json", {"uid": "u", "job": "1"}, homes.inline)
    made.expect("main", "img@sha256:0", "ContainerCreating")
    return made


def reported(report, *keys):
    main = report.content["containers"]["main"]
    return tuple(main[key] for key in keys)


@pytest.mark.parametrize(
    ("status", "code", "signal", "reason"),
    [(0, 0, None, "Completed"), (3 << 8, 3, None, "Error"), (9, 137, 9, "Error"), (15 | 0x80, 143, 15, "Error")],
)
def test_status_of_the_kernel_is_an_exit(status, code, signal, reason):
    ended = Exit.of_status(status)
    assert (ended.code, ended.signal, ended.shown_reason) == (code, signal, reason)


def test_life_of_a_container(report):
    report.running("main")
    report.health("main", is_started=True, ready=True)
    assert reported(report, "state", "ready", "is_started") == ("running", True, True)
    report.terminated("main", Exit(137, 9, "OOMKilled", "m"))
    assert reported(report, "state", "reason", "exit_code", "signal", "ready") == (
        "terminated",
        "OOMKilled",
        137,
        9,
        False,
    )
    report.waiting("main", "CrashLoopBackOff", "back-off")
    assert reported(report, "state", "reason", "exit_code") == ("waiting", "CrashLoopBackOff", None)
    report.restarted("main")
    report.waiting("main", "ContainerCreating")
    report.running("main")
    last = reported(report, "last", "restarts")
    assert (last[0]["exit_code"], last[0]["reason"], last[0]["message"], last[1]) == (137, "OOMKilled", "m", 1)


def test_container_that_becomes_another_is_never_seen_as_ended(report, tmp_path):
    seen = []
    report.changed = lambda: seen.append(reported(report, "state", "killing"))
    report.running("main")
    report.killing("main", "changed")
    report.replaced("main", Exit(143, 15), "ContainerCreating")
    report.image("main", "new@sha256:1", "new")
    report.image("main", "new@sha256:1", "new")
    assert seen == [("running", ""), ("running", "changed"), ("waiting", ""), ("waiting", "")]
    assert reported(report, "image_id", "image_name") == ("new@sha256:1", "new")
    assert reported(report, "last")[0]["exit_code"] == 143


def test_container_that_was_to_start_again_is_as_it_ended(report):
    report.terminated("main", Exit(3))
    ended = reported(report, "finished", "exit_code", "reason")
    report.waiting("main", "CrashLoopBackOff", "back-off")
    report.stays("main")
    assert reported(report, "state", "finished", "exit_code", "reason") == ("terminated", *ended)
    sequence = report.content["sequence"]
    report.stays("main")
    assert report.content["sequence"] == sequence


def test_container_without_probes_is_ready_with_its_start(report):
    report.running("main", is_started=True, ready=True)
    report.health("main", is_started=True, ready=True)
    assert (*reported(report, "state", "ready", "is_started"), report.content["sequence"]) == ("running", True, True, 1)


def test_each_change_is_in_the_file_before_it_is_reported(report, tmp_path):
    seen = []
    report.changed = lambda: seen.append(json.loads((tmp_path / "report.json").read_text())["sequence"])
    report.pod("running")
    report.running("main")
    report.health("main", ready=True)
    report.health("main", ready=True)
    assert seen == [1, 2, 3]
    assert json.loads((tmp_path / "report.json").read_text()) == report.content
    assert (tmp_path / "report.json").stat().st_mode & 0o777 == 0o600


def test_pod_that_cannot_run(report):
    report.refuse("FailedMount", "why")
    content = report.content
    assert (content["phase"], content["error"]) == ("ended", {"reason": "FailedMount", "message": "why"})


def test_failures_of_a_probe_are_counted_and_written_once_in_a_while(report, tmp_path):
    for _ in range(3):
        report.unhealthy("main", "readiness", "no")
    report.unhealthy("main", "liveness", "none")
    on_disk = json.loads((tmp_path / "report.json").read_text())["containers"]["main"]["failures"]
    assert on_disk == {"readiness": {"times": 3, "message": "no"}, "liveness": {"times": 1, "message": "none"}}
    assert report.content["sequence"] == 2


def test_probe_that_ends_a_container_is_written_at_once(report):
    report.unhealthy("main", "liveness", "no")
    report.unhealthy("main", "liveness", "no", "Container main failed liveness probe")
    assert (report.content["sequence"], *reported(report, "killing")) == (2, "Container main failed liveness probe")
    report.waiting("main", "ContainerCreating")
    assert reported(report, "killing") == ("",)


def test_kills_for_want_of_memory_are_counted_over_restarts(report):
    report.oom_kills("main", 2)
    report.waiting("main", "CrashLoopBackOff")
    report.oom_kills("main", 1)
    assert reported(report, "oom_kills") == (3,)


def test_last_word_is_written_though_the_home_took_nothing_a_moment_ago(tmp_path):
    """A retry would come too late for a pod that ends meanwhile."""
    folder = tmp_path / "gone"

    async def main():
        made = Report(folder / "report.json", {"uid": "u", "job": "1"}, homes.inline)
        made.pod("running")
        folder.mkdir()
        made.pod("ended")
        assert not (folder / "report.json").exists()
        made.last()

    asyncio.run(main())
    assert json.loads((folder / "report.json").read_text())["phase"] == "ended"


def test_changes_during_a_write_are_one_write(tmp_path):
    waiting = []
    made = Report(tmp_path / "report.json", {"uid": "u", "job": "1"}, lambda *write: waiting.append(write))
    for phase in ("starting", "running", "stopping", "ended"):
        made.pod(phase)
    assert len(waiting) == 1
    for write in waiting:
        homes.inline(*write)
    assert len(waiting) == 2
    kept = json.loads((tmp_path / "report.json").read_text())
    assert (kept["phase"], kept["sequence"]) == ("ended", 4)


def test_report_is_written_when_the_home_is_back(tmp_path, capfd):
    """By itself, and the log says once what was wrong."""
    folder = tmp_path / "gone"

    async def main(clock):
        made = Report(folder / "report.json", {"uid": "u", "job": "1"}, homes.inline)
        heard = []
        made.changed = lambda: heard.append(made.content["phase"])
        for phase in ("starting", "running"):
            made.pod(phase)
        assert heard == ["starting", "running"]
        await asyncio.sleep(5 * RETRY_S)
        folder.mkdir()
        await asyncio.sleep(2 * RETRY_S)

    virtual_time.run(main)
    assert json.loads((folder / "report.json").read_text())["phase"] == "running"
    assert capfd.readouterr().err.count("report.json cannot be written") == 1
