"""The dashboard for a site's Grafana, and the status page, ask for figures that there are."""

import json
import re

import pytest

from handbook import metrics
from isthmus.monitoring.parts import dns, passed
from tests.repo import tree

FILES = tree.ROOT / "roles/monitoring/files"
DASHBOARD = json.loads((FILES / "grafana.json").read_text())
NAME = re.compile(r"\b(?:slurm|isthmus|etcd|coredns)_\w+")
KNOWN = set(re.findall(r"`(\w+)` \|", metrics.text(tree.ROOT)))
SUFFIX = re.compile(r"_(?:bucket|count|sum)$")


def unknown(text):
    names = {SUFFIX.sub("", name) for name in NAME.findall(text)}
    return sorted(name for name in names if name not in KNOWN and not name.startswith(passed.ETCD + dns.NAMES))


@pytest.mark.parametrize("name", ["grafana.json", "status.html", "rules.yml"])
def test_figures_that_are_asked_for_exist(name):
    assert NAME.findall((FILES / name).read_text())
    assert not unknown((FILES / name).read_text())


def test_figure_that_does_not_exist_is_noticed():
    assert unknown("sum(slurm_jobs_runing)") == ["slurm_jobs_runing"]


def test_panels_have_questions_and_a_place_of_their_own():
    panels = DASHBOARD["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    assert len({(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in panels}) == len(panels)
    assert all(panel["targets"] and panel["title"] for panel in panels)
