"""isthmus-exporter: a file for each part, none with old figures; settings; what is passed on."""

import json
import os
import threading

import pytest

from isthmus.clients.process import ProcessError
from isthmus.monitoring import main, settings
from isthmus.monitoring.main import Loop
from isthmus.monitoring.parts import dns, network, node, passed, users
from isthmus.monitoring.parts.figures import Part, gauge
from isthmus.monitoring.settings import Settings, SettingsError
from tests.unit.monitoring.test_slurm import values

GIVEN = {
    "schema": 1,
    "interval_s": 15,
    "slurm_interval_s": 30,
    "slurm_prefix": "/usr",
    "network": True,
    "registry": "https://localhost:5000",
    "users": True,
    "sources": {"etcd": "http://127.0.0.1:2381/metrics"},
}


def loop(folder, collect):
    return Loop(Part("slurm", 15, collect), Settings(folder=folder))


def test_part_has_a_file_of_its_own(tmp_path):
    loop(tmp_path, lambda: [gauge("slurm_jobs", "jobs", 3)]).once()
    assert [path.name for path in tmp_path.iterdir()] == ["slurm.prom"]
    lines = (tmp_path / "slurm.prom").read_text().splitlines()
    assert 'isthmus_exporter_up{part="slurm"} 1.0' in lines
    assert "slurm_jobs 3.0" in lines


@pytest.mark.parametrize("error", [OSError("away"), ProcessError("squeue", 1, "it failed"), KeyError("figures")])
def test_source_that_does_not_answer_leaves_no_old_figures(tmp_path, error):
    answers = [[gauge("slurm_jobs", "jobs", 3)], error]

    def collect():
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    asked = loop(tmp_path, collect)
    asked.once()
    asked.once()
    text = (tmp_path / "slurm.prom").read_text()
    assert 'isthmus_exporter_up{part="slurm"} 0.0' in text
    assert "slurm_jobs" not in text


def test_error_that_nobody_foresaw_ends_the_program(tmp_path):
    def collect():
        raise ZeroDivisionError

    ended = threading.Event()
    with pytest.raises(ZeroDivisionError):
        loop(tmp_path, collect).run(ended)
    assert ended.is_set()


def test_settings_say_which_parts_there_are(tmp_path):
    (tmp_path / "exporter.json").write_text(json.dumps(GIVEN))
    found = {part.name: part.interval_s for part in main.parts(settings.read(tmp_path / "exporter.json"))}
    assert found == {
        "node": 15,
        "node_slow": 300,
        "network": 15,
        "dns": 15,
        "slurm": 30,
        "registry": 15,
        "tokend": 15,
        "users": 60,
        "etcd": 15,
    }
    bare = settings.parse(
        {**GIVEN, "slurm_prefix": "", "network": False, "registry": "", "users": False, "sources": {}}
    )
    assert [part.name for part in main.parts(bare)] == ["node", "node_slow"]


@pytest.mark.parametrize("text", ["", "[]", "{}", json.dumps({**GIVEN, "schema": 2})])
def test_settings_of_another_form_name_the_remedy(tmp_path, text):
    (tmp_path / "exporter.json").write_text(text)
    with pytest.raises(SettingsError, match=r"exporter\.json.*; run playbooks/monitoring\.yml"):
        settings.read(tmp_path / "exporter.json")


ETCD = """# HELP etcd_server_has_leader Whether or not a leader exists. 1 is existence, 0 is not.
# TYPE etcd_server_has_leader gauge
etcd_server_has_leader 1
# HELP go_goroutines Number of goroutines that currently exist.
# TYPE go_goroutines gauge
go_goroutines 120
"""


def test_some_figures_of_a_daemon_are_passed_on():
    assert passed.chosen(ETCD, passed.ETCD).splitlines() == ETCD.splitlines()[:3]


COREDNS = """# HELP coredns_cache_requests_total The count of cache requests.
# TYPE coredns_cache_requests_total counter
coredns_cache_requests_total{server="dns://10.64.1.1:53",view="",zones="."} 3
coredns_cache_requests_total{server="dns://10.64.2.1:53",view="",zones="."} 4
# HELP coredns_dns_requests_total Counter of DNS requests made per zone, protocol and family.
# TYPE coredns_dns_requests_total counter
coredns_dns_requests_total{family="1",proto="udp",server="dns://127.0.0.153:53",type="A",view="",zone="."} 6
# HELP coredns_proxy_request_duration_seconds Histogram of the time each request took.
# TYPE coredns_proxy_request_duration_seconds histogram
coredns_proxy_request_duration_seconds_bucket{proxy_name="forward",rcode="NOERROR",to="192.0.2.53:53",le="0.5"} 1
coredns_proxy_request_duration_seconds_bucket{proxy_name="forward",rcode="NOERROR",to="192.0.2.53:53",le="+Inf"} 2
coredns_proxy_request_duration_seconds_sum{proxy_name="forward",rcode="NOERROR",to="192.0.2.53:53"} 1.5
coredns_proxy_request_duration_seconds_count{proxy_name="forward",rcode="NOERROR",to="192.0.2.53:53"} 2
"""


def test_figures_of_the_dns_are_sums_without_users_addresses(monkeypatch):
    monkeypatch.setattr(passed.prometheus, "figures", {dns.URL: COREDNS}.__getitem__)
    found = values(dns.collect())
    assert found["coredns_cache_requests_total"] == 7
    assert found["coredns_proxy_request_duration_seconds_bucket", "NOERROR", "192.0.2.53:53", "0.5"] == 1
    assert found["coredns_proxy_request_duration_seconds_count", "NOERROR", "192.0.2.53:53"] == 2
    assert not any("10.64" in str(labels) or "dns_requests" in str(labels) for labels in found)


STATUS = {
    "revision": 12,
    "pods": 2,
    "legs": 1,
    "errors": {"etcd": "away"},
    "figures": {
        "cluster": {"members": 4, "users": 2, "jobs": 3, "addresses": 1024, "addresses_left": 512},
        "preparations": {"buckets": [["0.05", 1], ["+Inf", 3]], "sum_s": 0.5, "failures": 1},
    },
}


def test_answer_of_the_networks_daemon_is_read():
    found = values(network.read(STATUS))
    assert found["isthmus_network_revision"] == 12
    assert found["isthmus_network_errors"] == 1
    assert found["isthmus_network_addresses_left"] == 512
    assert found["isthmus_network_preparation_seconds_bucket", "+Inf"] == 3
    assert found["isthmus_network_preparation_seconds_count"] == 3
    assert found["isthmus_network_preparation_failures_total"] == 1


def test_daemon_of_an_older_version_has_no_figures():
    with pytest.raises(KeyError):
        list(network.read({"revision": 12, "pods": 2, "legs": 1, "errors": {}}))


def test_figures_of_users_are_read_while_they_are_new(tmp_path):
    path = tmp_path / "users.prom"
    head = "# HELP isthmus_user_pods Pods.\n# TYPE isthmus_user_pods gauge\n"
    path.write_text(f'{head}isthmus_user_pods{{phase="Running",user="alice"}} 3\n')
    assert values(users.collect(path)) == {("isthmus_user_pods", "Running", "alice"): 3}
    os.utime(path, (0, 0))
    with pytest.raises(OSError, match="writes it no more"):
        list(users.collect(path))


def test_looks_report_whether_they_drain():
    found = values([node.problems((check, check.drains * 2) for check in node.checks.CHECKS)])
    assert found["isthmus_node_check_problems", "home", "yes"] == 2
    assert found["isthmus_node_check_problems", "daemons", "no"] == 0
    assert len(found) == len(node.checks.CHECKS)
