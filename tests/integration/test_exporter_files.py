"""Files of isthmus-exporter are what Prometheus reads, and the status page shows what is in them."""

import subprocess
from itertools import count

import pytest
from prometheus_client.parser import text_string_to_metric_families

from isthmus.clients import http
from isthmus.jobs import users as reported
from isthmus.model.job_feed import Figures, Phase, Stage, Starts
from isthmus.monitoring.parts import figures, registry, users
from isthmus.network import metrics as networkd
from isthmus.network.node.refused import Why
from isthmus.registry.figures import Figures as Requests
from isthmus.registry.room import Disk
from tests.repo import tree
from tests.support.servers.etcd import free_port
from tests.support.wait import wait

PAGES = tree.ROOT / "roles/monitoring/files"
REPORT = Figures({Phase.RUNNING: 3}, {Stage.QUEUE: Starts(2, 500)})


def users_metrics(folder):
    path = folder / "reported"
    reported._written({number: REPORT for number in range(3)}, path, lambda uid: f'user "{uid}"\n')
    return users.collect(path)


PARTS = {
    "users": users_metrics,
    "registry": lambda _: registry.answering(is_up=True, took_s=0.1),
    "tokend": lambda _: text_string_to_metric_families(Requests().page(Disk(5, 6), 3)),
    "network": lambda _: text_string_to_metric_families(networkd.page(dict(zip(Why, count(1), strict=False)))),
}


@pytest.mark.parametrize("part", PARTS)
def test_file_is_well_formed(part, tmp_path):
    figures.write(tmp_path, part, PARTS[part](tmp_path))
    text = (tmp_path / f"{part}.prom").read_text()
    ended = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr


@pytest.fixture
def site(tmp_path):
    """Prometheus with the status page, on a site of which nothing is known yet."""
    (tmp_path / "prometheus.yml").write_text("scrape_configs: []\n")
    port = free_port()
    options = {
        "config.file": tmp_path / "prometheus.yml",
        "storage.tsdb.path": tmp_path / "data",
        "web.listen-address": f"127.0.0.1:{port}",
        "web.console.templates": PAGES,
        "web.console.libraries": PAGES,
        "log.level": "error",
    }
    running = subprocess.Popen(["prometheus", *(f"--{name}={value}" for name, value in options.items())])
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        running.kill()
        running.wait()


def answer(url):
    try:
        return http.ask("GET", url, http.Limits(10, 1 << 20))
    except OSError:
        return None


def test_status_page_is_rendered_where_nothing_is_known(site):
    wait(lambda: answer(f"{site}/-/ready"), lambda found: found and found.status == 200, timeout_s=30)
    found = answer(f"{site}/consoles/status.html")
    assert found.status == 200, found.content
    page = found.content.decode()
    for name in ("alerts", "slurm", "network", "services", "hosts"):
        assert f'id="{name}"' in page
    assert "No alert is firing." in page
    assert "error" not in page.lower()
