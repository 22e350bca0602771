"""The report of kept results in a real browser: wide, narrow and dark."""

from dataclasses import replace

import pytest

from isthmus.bench import results
from isthmus.bench.plan import Cluster
from isthmus.bench.report import main
from tests.support.files import bench_results
from tests.support.servers import browser

WIDTHS = {"wide": 1280, "narrow": 500}


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")
    beside = Cluster(4, 96, 24576, plain=bench_results.PLAIN)
    results.write(bench_results.document(cluster=beside), folder / "results.json")
    return main.write(folder / "results.json", folder)[0]


@pytest.mark.parametrize(("name", "dark"), [("wide", False), ("narrow", False), ("wide", True)])
def test_page_is_shown(page, name, dark):
    shown = browser.show(page, page.with_name(f"{name}.png"), WIDTHS[name], dark=dark)
    assert shown.said == []
    assert shown.colours > 20
    assert shown.brightness < 80 if dark else shown.brightness > 180


@pytest.mark.parametrize("name", WIDTHS)
def test_page_is_no_wider_than_its_window(page, name):
    found = browser.probe(page, WIDTHS[name])
    assert found["wide"] <= found["seen"] <= WIDTHS[name]
    assert found["plots"] >= 12
    assert found["text"] > 3000


def test_console_of_a_wrong_page_is_heard(page, tmp_path):
    wrong = tmp_path / "wrong.html"
    wrong.write_text("<title>wrong</title><script>nothing.there()</script>")
    assert browser.show(wrong, tmp_path / "wrong.png").said


def test_page_without_a_run_is_shown(tmp_path):
    results.write(replace(bench_results.document(), results=()), tmp_path / "results.json")
    page, *_ = main.write(tmp_path / "results.json", tmp_path)
    assert browser.show(page, tmp_path / "empty.png").said == []
