"""The rules that alerts come from, in Prometheus' own test tool: each fires for its fault, and for nothing else."""

import json
import re
import subprocess
from typing import NamedTuple

import pytest

from tests.repo import tree

RULES = tree.ROOT / "roles/monitoring/files/rules.yml"
RUNBOOKS = tree.ROOT / "docs/admins/runbooks.md"
ALERTS = {rule["alert"]: rule for group in tree.load(RULES)["groups"] for rule in group["rules"]}
# A figure each 15 s, for a quarter of an hour.
STEADY = "x60"
NOW = "15m"


class Case(NamedTuple):
    """A rule, and series with values in promtool's form: those of hosts with the fault, and those of others."""

    alert: str
    faulty: dict[str, str]
    well: dict[str, str]


def same(value, series=STEADY):
    """One value all the time."""
    return f"{value}+0{series}"


def check(name, drains, host="c1"):
    return f'isthmus_node_check_problems{{instance="{host}",check="{name}",drains="{drains}"}}'


def part(name, host="c1"):
    return f'isthmus_exporter_up{{instance="{host}",part="{name}"}}'


def node(host):
    return f'up{{job="node",instance="{host}"}}'


def disk(name, host):
    return f'node_filesystem_{name}_bytes{{instance="{host}",mountpoint="/",fstype="ext4"}}'


def written(name, host="c1"):
    return f'node_textfile_mtime_seconds{{instance="{host}",file="/run/isthmus-exporter/{name}.prom"}}'


def revision(host):
    return f'isthmus_network_revision{{instance="{host}"}}'


FAILED = 'alertmanager_notifications_failed_total{integration="email"}'
END = 'isthmus_certificate_end_timestamp_seconds{instance="c1",certificate="etcd"}'
REFUSED = "isthmus_network_preparation_failures_total"
PACKETS = 'isthmus_networkd_refused_packets_total{{instance="{}",why="forged"}}'
ASKED = 'coredns_proxy_request_duration_seconds_count{{instance="{}",rcode="{}"}}'
BROKEN = 'coredns_forward_healthcheck_broken_total{{instance="{}"}}'
REJECTS = 'coredns_forward_max_concurrent_rejects_total{{instance="{}"}}'
REQUESTS = 'isthmus_registry_requests_total{{instance="ctl",what="write",outcome="{}"}}'
CASES = [
    Case("HostDown", {node("c1"): same(0)}, {node("c2"): same(1)}),
    Case(
        "DaemonDown",
        {'isthmus_daemon_up{instance="c1",daemon="slurmd"}': same(0)},
        {'isthmus_daemon_up{instance="c1",daemon="munge"}': same(1)},
    ),
    Case("NodeUnfit", {check("home", "yes"): same(1)}, {check("fuse", "yes"): same(0)}),
    Case(
        "NodeProblem", {check("clock", "no"): same(1)}, {check("daemons", "no"): same(1), check("gpus", "no"): same(0)}
    ),
    # promtool's clock begins at 1970.
    Case("CertificateEnds", {END: same(13 * 86400)}, {END.replace("c1", "c2"): same(15 * 86400)}),
    Case(
        "DiskFills",
        {disk("avail", "c1"): same(4), disk("size", "c1"): same(100)},
        {disk("avail", "c2"): same(6), disk("size", "c2"): same(100)},
    ),
    Case("FiguresMissing", {part("etcd"): same(0)}, {part("network"): same(1)}),
    Case("ExporterDown", {node("c1"): same(1)}, {node("c2"): same(1), part("node", "c2"): same(1)}),
    Case("FiguresOld", {written("node"): same(0)}, {written("slurm"): "0+15x60", written("node_slow"): same(0)}),
    Case("AlertmanagerDown", {'up{job="alertmanager"}': same(0)}, {'up{job="prometheus"}': same(0)}),
    Case("AlertsNotSent", {FAILED: "0+1x60"}, {FAILED.replace("email", "webhook"): same(3)}),
    Case("SlurmSilent", {part("slurm", "ctl"): same(0)}, {part("slurm", "ctl2"): same(1)}),
    Case("SlurmNodesDown", {"slurm_nodes_down": same(1)}, {"slurm_nodes_drain": same(1)}),
    Case("SlurmAccountingBehind", {"slurm_slurmdbd_queue_size": same(5000)}, {}),
    Case("SlurmSchedulerSlow", {"slurm_schedule_cycle_last": same(3000000)}, {}),
    Case(
        "EtcdWithoutLeader",
        {'etcd_server_has_leader{instance="ctl"}': same(0)},
        {'etcd_server_has_leader{instance="c1"}': same(1)},
    ),
    Case("EtcdFills", {"etcd_mvcc_db_total_size_in_bytes": same(90), "etcd_server_quota_backend_bytes": same(100)}, {}),
    Case(
        "PodAddressesFewLeft", {"isthmus_network_addresses_left": same(9), "isthmus_network_addresses": same(100)}, {}
    ),
    Case("PodNetworkBehind", {revision("c1"): same(5)}, {revision("c2"): "5+1x60"}),
    Case("PodNetworkErrors", {"isthmus_network_errors": same(1)}, {}),
    Case("PodNetworksFail", {REFUSED + '{instance="c1"}': "0+1x60"}, {REFUSED + '{instance="c2"}': same(7)}),
    Case("PacketsRefused", {PACKETS.format("c1"): "0+3000x60"}, {PACKETS.format("c2"): "0+150x60"}),
    Case("DnsUpstreamsDown", {BROKEN.format("c1"): "0+1x60"}, {BROKEN.format("c2"): "0+0.2x60"}),
    Case(
        "DnsFails",
        {ASKED.format("c1", "SERVFAIL"): "0+40x60", ASKED.format("c1", "NOERROR"): "0+30x60"},
        {
            **{ASKED.format("c2", "SERVFAIL"): "0+20x60", ASKED.format("c2", "NXDOMAIN"): "0+90x60"},
            # One question each two minutes.
            ASKED.format("c3", "SERVFAIL"): "0+0.125x60",
        },
    ),
    Case("DnsBusy", {REJECTS.format("c1"): "0+5x60"}, {REJECTS.format("c2"): same(5)}),
    Case("RegistryDown", {'isthmus_registry_up{instance="ctl"}': same(0)}, {}),
    Case(
        "RegistryFull",
        {"isthmus_registry_disk_free_bytes": same(9), "isthmus_registry_disk_reserve_bytes": same(10)},
        {},
    ),
    Case("RegistryFails", {REQUESTS.format("failed"): "0+1x60"}, {REQUESTS.format("refused"): "0+9x60"}),
    Case("JobsViewOld", {"isthmus_jobsd_kubelets": same(3), "isthmus_jobsd_view_age_seconds": same(90)}, {}),
]


def promtool(folder, document, *words):
    file = folder / "rules_test.yml"
    file.write_text(json.dumps(document))
    return subprocess.run(["promtool", *words, str(file)], capture_output=True, text=True, check=False)


def document(series, alert, labels):
    """A test of promtool: which of an alert's series fire at the end."""
    expected = [{"labels": f"firing{{{found}}}", "value": 1} for found in labels]
    wanted = (
        f"count by (instance, check, daemon, file, integration) (ALERTS{{alertname='{alert}',alertstate='firing'}})"
    )
    relabeled = f"label_replace({wanted}, '__name__', 'firing', '', '')"
    return {
        "rule_files": [str(RULES)],
        "evaluation_interval": "15s",
        "tests": [
            {
                "interval": "15s",
                "input_series": [{"series": name, "values": values} for name, values in series.items()],
                "promql_expr_test": [{"expr": relabeled, "eval_time": NOW, "exp_samples": expected}],
            }
        ],
    }


def kept(series):
    """Labels of a series that identify hosts and parts."""
    found = re.findall(r'(instance|check|daemon|file|integration)="([^"]*)"', series)
    return ",".join(f'{name}="{value}"' for name, value in sorted(found))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.alert)
def test_alert_fires_for_its_fault_alone(case, tmp_path):
    faults = {kept(series) for series in case.faulty}
    ended = promtool(tmp_path, document(case.faulty | case.well, case.alert, faults), "test", "rules")
    assert ended.returncode == 0, ended.stdout + ended.stderr


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.alert)
def test_alert_is_silent_where_nothing_is_reported(case, tmp_path):
    ended = promtool(tmp_path, document(case.well, case.alert, []), "test", "rules")
    assert ended.returncode == 0, ended.stdout + ended.stderr


def test_test_that_expects_too_much_fails(tmp_path):
    wrong = document({node("c1"): same(1)}, "HostDown", ['instance="c1"'])
    assert promtool(tmp_path, wrong, "test", "rules").returncode != 0


def test_rules_are_well_formed():
    ended = subprocess.run(["promtool", "check", "rules", str(RULES)], capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr


def test_each_alert_has_a_test_and_a_runbook():
    assert [case.alert for case in CASES] == list(ALERTS)
    assert re.findall(r"^## (\w+)$", RUNBOOKS.read_text(), re.MULTILINE) == list(ALERTS)


def test_each_alert_has_a_severity_and_a_summary():
    for rule in ALERTS.values():
        assert rule["labels"]["severity"] in ("critical", "warning", "info")
        assert rule["annotations"]["summary"]
