"""What `isthmus doctor --site` finds in what the host, Slurm and Prometheus say."""

from functools import partial

import pytest

from isthmus.clients import prometheus
from isthmus.clients.process import Finished, ProcessError
from isthmus.clients.prometheus import Alert
from isthmus.controlplane.doctor.findings import Level
from isthmus.monitoring import site
from isthmus.monitoring.checks import Check

DRAINED = "c2|drained|isthmus: health: /tmp is full\n"


@pytest.mark.parametrize(
    ("output", "found"),
    [
        ("c1|idle|none\nc1|idle|none\n", [(Level.OK, "Slurm has nothing against its 1 nodes")]),
        (f"c1|mixed-|none\n{DRAINED}", [(Level.WARNING, "c2 is drained (isthmus: health: /tmp is full)")]),
        ("c1|idle*|none\n", [(Level.FAILURE, "c1 does not answer")]),
        ("c1|down|Not|responding\n", [(Level.FAILURE, "c1 is down (Not|responding)")]),
        ("c1|drained*|new disk\n", [(Level.FAILURE, "c1 does not answer (new disk)")]),
    ],
)
def test_nodes_that_slurm_has_something_against_are_named(output, found):
    assert [(finding.level, finding.what) for finding in site.nodes(output)] == found


def test_problems_of_the_host_have_levels_and_remedies():
    broken = Check("disks", lambda: iter(["/var is full"]), "make room")
    soon = Check("certificates", lambda: iter(["etcd.crt ends in 3 days"]), "renew", warns=True)
    levels = {finding.what: (finding.level, finding.remedy) for finding in site.host([broken, soon])}
    assert levels == {
        "this host: /var is full": (Level.FAILURE, "make room"),
        "this host: etcd.crt ends in 3 days": (Level.WARNING, "renew"),
    }
    assert [finding.level for finding in site.host([Check("disks", lambda: iter(()), "")])] == [Level.OK]


def test_alerts_come_with_their_runbooks():
    found = list(site.alerts([Alert("HostDown", "critical", "c1 is away"), Alert("DiskFills", "warning", "/ of c1")]))
    assert [finding.level for finding in found] == [Level.FAILURE, Level.WARNING]
    assert found[0].remedy.endswith("runbooks.md#hostdown")
    assert [finding.level for finding in site.alerts([Alert("PacketsRefused", "info", "c1")])] == [Level.OK]
    assert [finding.level for finding in site.alerts([])] == [Level.OK]


def test_answer_of_prometheus_is_read():
    alert = {"labels": {"alertname": "A", "severity": "warning"}, "annotations": {"summary": "s"}, "state": "firing"}
    answer = {"data": {"alerts": [alert, {**alert, "state": "pending"}]}}
    assert prometheus.read(answer) == [Alert("A", "warning", "s")]
    with pytest.raises(ValueError, match="Prometheus answered"):
        prometheus.read({"status": "error"})


@pytest.fixture
def bare(monkeypatch, tmp_path):
    monkeypatch.setattr(site.checks, "CHECKS", ())
    monkeypatch.setattr(prometheus, "SETTINGS", tmp_path)
    monkeypatch.setattr(site, "run", lambda *_, **__: Finished("c1|idle|none\n", ""))
    return tmp_path


def levels(**more):
    return [finding.level for finding in site.examine(**more)]


def test_site_without_monitoring_is_examined_too(bare):
    assert levels() == [Level.OK, Level.OK, Level.WARNING]


def fail(error, *_, **__):
    raise error


def test_look_that_cannot_be_made_is_a_failure(bare, monkeypatch):
    (bare / "prometheus.yml").touch()
    monkeypatch.setattr(site, "run", partial(fail, ProcessError("sinfo", 1, "no answer")))
    assert levels(firing=partial(fail, OSError("refused"))) == [Level.OK, Level.FAILURE, Level.FAILURE]
