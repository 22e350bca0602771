"""What the kubelet shows Prometheus."""

import pytest
from prometheus_client.parser import text_string_to_metric_families

from isthmus.kubelet import metrics
from isthmus.kubelet.api import stats
from isthmus.kubelet.metrics import StartTimes
from isthmus.model.job_feed import Figures, Phase, Stage, Starts

SUBMIT, QUEUE, REPORT, STATUS = Stage


class Start:
    """A start, with a clock of its own and what was measured."""

    def __init__(self):
        self.now_s, self.measured = 10.0, []
        self.times = StartTimes(lambda: self.now_s, lambda stage, took_s: self.measured.append((stage, took_s)))

    def reach(self, *stages):
        """Reach each a second after the one before."""
        for stage in stages:
            self.now_s += 1
            self.times.reached(stage)
        return self.measured


@pytest.mark.parametrize(
    ("reached", "measured"),
    [
        ([*Stage], [(stage, 1.0) for stage in Stage]),
        ([SUBMIT, SUBMIT, QUEUE], [(SUBMIT, 1.0), (QUEUE, 2.0)]),
        ([SUBMIT, QUEUE, QUEUE, REPORT, REPORT, STATUS, STATUS], list(zip(Stage, (1.0, 1.0, 2.0, 2.0), strict=True))),
        # Ended before it was seen to run: nothing is known of the stages between.
        ([SUBMIT, STATUS, QUEUE, REPORT], [(SUBMIT, 1.0)]),
        ([QUEUE, SUBMIT], []),
    ],
)
def test_stage_is_measured_once_and_in_order(reached, measured):
    assert Start().reach(*reached) == measured


def test_pod_of_an_earlier_kubelet_is_not_measured():
    start = Start()
    start.times.give_up()
    assert start.reach(*Stage) == []


def samples(text):
    return {
        (sample.name, *sorted(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_phases_are_those_of_now():
    metrics.page([{"status": {"phase": "Pending"}}])
    found = samples(metrics.page([{"status": {"phase": "Running"}}, {"status": {"phase": "Running"}}, {}]))
    phases = {labels[0][1]: value for (name, *labels), value in found.items() if name == "isthmus_kubelet_pods"}
    assert phases == {"Running": 2, "Unknown": 1}
    assert found[("process_max_resident_memory_bytes",)] > 1 << 20


HOSTILE = 'a"b\\c\nd'
USAGE = {"cpu": {"usageCoreNanoSeconds": 1_500_000_000}, "memory": {"usageBytes": 7, "workingSetBytes": 7}}
ONE = {"name": "main", "startTime": None, **USAGE}
SUMMARY = {
    "node": USAGE,
    "pods": [{"podRef": {"name": "web", "namespace": "x", "uid": "1"}, "containers": [ONE], **USAGE}],
}


def test_label_that_holds_anything_stays_one_label():
    status = {"containerStatuses": [{"name": "main", "image": HOSTILE}]}
    found = samples(stats.cadvisor(SUMMARY, [{"metadata": {"uid": "1"}, "status": status}]))
    labels = {"container": "main", "id": "", "image": HOSTILE, "name": "", "namespace": "x", "pod": "web"}
    assert found[("container_cpu_usage_seconds_total", *sorted(labels.items()))] == 1.5
    # Of one that has not started there is no such time.
    assert "container_start_time_seconds" not in {name for name, *_ in found}


def test_usage_is_of_containers_pods_and_all():
    found = samples(stats.resources(SUMMARY))
    assert found[("node_cpu_usage_seconds_total",)] == 1.5
    place = (("namespace", "x"), ("pod", "web"))
    assert found[("pod_memory_working_set_bytes", *place)] == 7
    assert found[("container_memory_working_set_bytes", ("container", "main"), *place)] == 7


def test_report_has_counts_of_pods_and_no_word_of_them():
    phases = ["Running", "Running", "Pending", "Weird", "Unknown", None]
    pods = [{"metadata": {"name": "secret"}, "status": {"phase": phase} if phase else {}} for phase in phases]
    found = metrics.figures(pods)
    assert found.pods == {
        Phase.PENDING: 1,
        Phase.RUNNING: 2,
        Phase.SUCCEEDED: 0,
        Phase.FAILED: 0,
        Phase.UNKNOWN: 3,
    }
    assert found.starts.keys() == {*Stage}


def test_report_has_how_long_starts_took():
    before = metrics.figures([]).starts[QUEUE]
    metrics.START_S.labels(QUEUE).observe(1.5)
    after = metrics.figures([]).starts[QUEUE]
    assert after == Starts(before.count + 1, before.sum_ms + 1500)
    assert metrics.figures([]) == Figures(dict.fromkeys(Phase, 0), metrics.figures([]).starts)
