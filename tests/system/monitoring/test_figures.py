"""Every host is asked, every part answers, and the figures are the cluster's own."""

import json
import shutil

import pytest

from tests.support.clusters import monitoring
from tests.support.servers import browser
from tests.support.wait import wait


@pytest.fixture(scope="module")
def watched_hosts(nodes):
    return sorted(node.name for node in nodes.values() if "monitoring" in node.variables["groups"])


def test_every_host_is_asked(controller, watched_hosts):
    def answering():
        return sorted(host for host, _ in monitoring.query(controller, 'sum by (instance, job) (up{job="node"} == 1)'))

    wait(answering, lambda hosts: hosts == watched_hosts, timeout_s=60)


def test_every_part_answers(controller, watched_hosts):
    def parts():
        return monitoring.query(controller, "sum by (instance, part) (isthmus_exporter_up)")

    found = wait(parts, lambda parts: parts and min(parts.values()) == 1, timeout_s=60)
    assert {(host, "node") for host in watched_hosts} <= found.keys()
    assert (controller.name, "slurm") in found


def test_slurms_figures_are_sinfos(controller, computes):
    cpus = sum(int(line.split("/")[3]) for line in controller.output("sinfo -hNo '%n %C' | sort -u").splitlines())
    wait(lambda: monitoring.one(controller, "slurm_nodes"), lambda count: count == len(computes), timeout_s=60)
    assert monitoring.one(controller, "sum(slurm_node_cpus)") == cpus


def test_running_job_is_counted(controller, login, user):
    job = login.run_as(user, "sbatch --parsable --comment=watched --wrap 'sleep 120'")
    try:
        wait(lambda: monitoring.one(controller, "slurm_jobs_running"), lambda count: count >= 1, timeout_s=60)
    finally:
        login.run_as(user, f"scancel {job}")


def test_pod_networks_have_figures(controller, cluster):
    members = {node.name for node in cluster.part("network")}
    found = monitoring.query(controller, "sum by (instance) (isthmus_network_members)")
    assert {host for (host,) in found} == members
    assert set(found.values()) == {len(members)}
    assert monitoring.one(controller, "min(isthmus_network_addresses_left)") > 0


def test_question_to_the_dns_is_counted(controller, computes):
    asked = f"coredns_cache_requests_total{{instance='{computes[0].name}'}}"
    before = wait(lambda: monitoring.query(controller, asked), bool, timeout_s=60)
    computes[0].run("getent -s dns ahostsv4 nobody.isthmus")
    wait(
        lambda: monitoring.query(controller, asked),
        lambda found: sum(found.values()) > sum(before.values()),
        timeout_s=60,
    )


def test_refused_packet_is_counted(controller, computes, login, user):
    """No pod reaches sshd of its node."""
    node = computes[0]
    asked = f"sum(isthmus_networkd_refused_packets_total{{instance='{node.name}',why='pod_to_host'}})"
    (before,) = wait(lambda: monitoring.query(controller, asked), bool, timeout_s=60).values()
    refused = f"timeout 3 bash -c 'echo > /dev/tcp/{node.variables['base_address']}/22'"
    login.try_as(user, f"srun --pod-network=private --mem=20 --nodelist={node.name} {refused}")
    wait(lambda: monitoring.one(controller, asked), lambda count: count > before, timeout_s=60)


def test_registry_has_figures(controller):
    wait(lambda: monitoring.query(controller, "isthmus_registry_up == 1"), bool, timeout_s=60)
    assert monitoring.one(controller, "isthmus_registry_accounts") > 0
    assert monitoring.one(controller, "isthmus_registry_disk_free_bytes") > 0


def test_daemons_and_certificates_are_watched(controller, computes):
    found = monitoring.query(controller, "sum by (daemon, instance) (isthmus_daemon_up)")
    assert {("slurmctld", controller.name), ("slurmd", computes[0].name), ("munge", computes[0].name)} <= found.keys()
    assert monitoring.one(controller, "min(isthmus_certificate_end_timestamp_seconds - time())") > 14 * 86400


def test_status_page_is_shown(controller, watched_hosts, tmp_path):
    if not shutil.which("chromium"):
        pytest.skip("no browser here; `make test-packages` installs one")
    page = tmp_path / "status.html"
    page.write_text(monitoring.page(controller, "/consoles/status.html"))
    shown = browser.show(page, tmp_path / "status.png")
    assert shown.said == []
    assert shown.colours > 10
    for host in watched_hosts:
        assert f"<td>{host}</td>" in page.read_text()


def test_doctor_finds_what_is_wrong_with_the_site(controller):
    found = json.loads(controller.run("isthmus doctor --site --json").stdout)["findings"]
    said = [finding["what"] for finding in found]
    assert any("Slurm has nothing against" in what or " is d" in what for what in said)
    assert "the site is not watched" not in said
    assert all(finding["remedy"] for finding in found if finding["level"] != "ok")


def test_doctor_of_the_site_is_for_root(login, user):
    done = login.try_as(user, "isthmus doctor --site")
    assert done.rc == 1
    assert "only root can examine the site" in done.stderr
