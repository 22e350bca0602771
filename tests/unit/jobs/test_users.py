"""What the site is shown of users' kubelets: counts, of the account of the connection, and of not too many."""

import asyncio
import re

from prometheus_client.parser import text_string_to_metric_families

from isthmus.jobs import users
from isthmus.jobs.hub import FIGURES_S, Hub
from isthmus.model.job_feed import Demand, Figures, Phase, Stage, Starts
from isthmus.support import metrics
from tests.support import virtual_time
from tests.support.fakes.shared_slurm import SharedSlurm

ALICE, BOB = 1001, 1002
SOME = Figures({Phase.RUNNING: 3, Phase.FAILED: 0}, {Stage.QUEUE: Starts(4, 2500), Stage.SUBMIT: Starts(0, 0)})


def page(reported, name=str):
    return metrics.text(metrics.Families([*users.families(reported, name)]))


def samples(text):
    return {
        (sample.name, *sorted(sample.labels.values())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def reported(hub, *uids, figures=SOME):
    for uid in uids:
        hub.demand(hub.subscribe(uid, print), Demand(60, figures=figures))


def test_account_has_what_it_reported_and_no_line_of_nothing():
    found = samples(page({ALICE: SOME}, {ALICE: "alice"}.__getitem__))
    assert found == {
        ("isthmus_user_pods", "Running", "alice"): 3,
        ("isthmus_user_pod_start_seconds_count", "alice", "queue"): 4,
        ("isthmus_user_pod_start_seconds_sum", "alice", "queue"): 2.5,
        ("isthmus_user_reports",): 1,
        ("isthmus_user_reports_left_out",): 0,
    }


def test_a_thousand_accounts_fit_and_more_are_left_out():
    every = Figures(dict.fromkeys(Phase, 10**6), dict.fromkeys(Stage, Starts(2**53 - 1, 2**53 - 1)))
    text = page(dict.fromkeys(range(1, 2049), every), lambda uid: f"user-with-a-long-name-{uid}")
    found = samples(text)
    assert len(found) == 13 * users.ACCOUNTS_MOST + 2
    assert found["isthmus_user_reports",] == users.ACCOUNTS_MOST
    assert found["isthmus_user_reports_left_out",] == 1048
    assert len(text) < 2 << 20


def test_name_of_an_account_cannot_add_a_line():
    assert len(re.findall(r"^isthmus_user_pods\b", page({ALICE: SOME}, lambda _: 'a"} 1\nb'), re.MULTILINE)) == 1


def test_account_that_is_gone_has_its_number():
    assert users.name_of(3_999_999_999) == "3999999999"
    assert users.name_of(0) == "root"


def test_report_is_of_the_connections_account_and_the_newest_one_counts():
    hub = Hub(SharedSlurm(), lambda: 0.0)
    reported(hub, ALICE, BOB)
    reported(hub, ALICE, figures=Figures({Phase.PENDING: 1}))
    # A demand without a report takes none away.
    hub.demand(hub.subscribe(BOB, print), Demand(60))
    assert hub.figures == {ALICE: Figures({Phase.PENDING: 1}), BOB: SOME}


def test_report_ends_with_its_connection_and_with_time():
    now = [0.0]
    hub = Hub(SharedSlurm(), lambda: now[0])
    alice = hub.subscribe(ALICE, print)
    hub.demand(alice, Demand(60, figures=SOME))
    reported(hub, BOB)
    hub.unsubscribe(alice)
    assert hub.figures.keys() == {BOB}
    now[0] = FIGURES_S + 1
    assert hub.figures == {}


def test_file_is_written_again_and_a_full_disk_is_waited_for(monkeypatch, tmp_path):
    virtual_time.inline(monkeypatch)
    path = tmp_path / "run/users.prom"

    async def main(clock):
        hub = Hub(SharedSlurm(), clock)
        reported(hub, ALICE)
        task = asyncio.create_task(users.write(hub, path, str))
        await asyncio.sleep(users.WRITTEN_S + 1)
        assert not path.exists()
        path.parent.mkdir()
        await asyncio.sleep(users.WRITTEN_S)
        task.cancel()

    virtual_time.run(main)
    assert 'isthmus_user_pods{phase="Running",user="1001"} 3.0' in path.read_text()
    assert path.stat().st_mode & 0o777 == 0o600
