"""The report: ratios within rounds, what is missing, and what two pages say."""

import re
from dataclasses import replace

import pytest

from isthmus.bench import results
from isthmus.bench.plan import Cluster
from isthmus.bench.report import figures, goals, main, page, plots, tables
from isthmus.bench.report.figures import Figure
from tests.support.files import bench_results


@pytest.fixture(scope="module")
def document():
    return bench_results.document()


@pytest.fixture(scope="module")
def drawn(document):
    return plots.plots(document)


@pytest.fixture(scope="module")
def beside():
    return bench_results.document(cluster=Cluster(4, 96, 24576, plain=bench_results.PLAIN))


def grid(document, name):
    return next(each for each in tables.grids(document) if each.name == name)


def test_pairs_are_of_one_round(document):
    pairs = figures.pairs(document, "table3", "1/4", "mpijob", "slurm", Figure.PROGRAM)
    assert pairs == pytest.approx([1.01] * 6)
    lost = replace(document, results=tuple(each for each in document.results if each.key != "3/table3/1/4/slurm"))
    # Each round of the sample is slower than the one before, so that others' partners would be seen.
    assert figures.pairs(lost, "table3", "1/4", "mpijob", "slurm", Figure.PROGRAM) == pytest.approx([1.01] * 5)


def test_time_of_repeated_sets_is_that_of_one(document):
    (first, *_) = document.results
    sets = replace(first, figures={"seconds": 1.5, "sets": 3})
    assert figures.value(sets, Figure.SECONDS) == 0.5
    assert figures.value(replace(first, figures={"seconds": 1.5}), Figure.SECONDS) == 1.5


def test_latency_is_of_the_smallest_message_and_bandwidth_the_best(document):
    points = [[1, 0.5, 2.0], [1024, 90.0, 11.0], [1 << 20, 80.0, 12_500.0]]
    measured = replace(document.results[0], figures={"points": points})
    assert figures.value(measured, Figure.LATENCY) == 2.0
    assert figures.value(measured, Figure.BANDWIDTH) == 90.0


def test_warm_up_and_failures_count_nowhere(document):
    assert set(figures.cell(document, "ep", "2", "slurm")) == set(range(1, 7))
    broken = tuple(replace(each, error="lost") if each.round == 2 else each for each in document.results)
    assert set(figures.cell(replace(document, results=broken), "ep", "2", "slurm")) == {1, 3, 4, 5, 6}


def test_all_tables_are_filled(document):
    assert [each.name for each in tables.grids(document)] == [
        "table3", "table4", "parts", "table5", "table6", "figure2", "figure3", "ep", "noise",
    ]  # fmt: skip
    assert not [row for each in tables.grids(document) for row in each.rows if tables.NOTHING in row]
    assert {len(row) for row in grid(document, "table5").rows} == {len(grid(document, "table5").header)}


def test_ratio_has_its_interval(document):
    (row, *_) = grid(document, "table3").rows
    assert row[-3:-1] == ("1.010 (1.010 to 1.010)", "1.005 (1.005 to 1.005)")
    assert "too few pairs: 2" in grid(bench_results.document(rounds=2), "table3").rows[0][-2]


def test_each_part_of_the_way_has_its_ratio(document):
    """1.002, 1.004 and 1.01 of a native run; what is between them is each part's."""
    (row, *_) = grid(document, "parts").rows
    assert [each.partition(" ")[0] for each in row[1:]] == ["1.002", "1.002", "1.006", "1.001"]


def test_noise_is_that_of_native_runs(document):
    """The sample's runs hardly differ; one that takes twice as long is seen from both sides."""
    (row, *_) = grid(document, "noise").rows
    assert row[1:] == ("15", "1.001 (1.001 to 1.001)", "1.00 to 1.00")
    slow = tuple(
        replace(each, figures={**each.figures, "seconds": 2 * each.figures["seconds"]})
        if each.key == "3/table3/1/4/slurm"
        else each
        for each in document.results
    )
    ratios = figures.repeats(replace(document, results=slow), "table3", Figure.SECONDS)
    assert sorted(ratios) == pytest.approx([0.5, *[1.0] * 13, 2.0], abs=0.01)


def test_speed_up_is_from_the_columns_own_base(document):
    """The paper took Kubernetes' for both."""
    slower = tuple(
        replace(each, figures={**each.figures, "seconds": 2 * each.figures["seconds"]})
        if (each.row, each.column) == ("1", "mpijob")
        else each
        for each in document.results
    )
    assert tables.speed_up(replace(document, results=slower), "table5", "4 A", "slurm") == "1.00, 4.00"
    assert tables.speed_up(replace(document, results=slower), "table5", "4 A", "mpijob") == "2.00, 4.00"


def test_goals_are_judged(document):
    judged = {each.what: each.is_met for each in goals.goals(document)}
    assert judged["table 3, 1/4: MPIJob to Slurm, ranks from begin to end"] is True
    assert judged["table 4, latency between nodes"] is True
    slower = tuple(
        replace(each, program_s=each.program_s * 1.1) if each.column == "mpijob" else each for each in document.results
    )
    judged = {each.what: each.is_met for each in goals.goals(replace(document, results=slower))}
    assert judged["table 3, 1/4: MPIJob to Slurm, ranks from begin to end"] is False


def latency(document, us):
    """Judge latencies, where MPIJob's are so much longer than two microseconds."""
    points = {"slurm": [[1, 0.5, 2.0]], "mpijob": [[1, 0.5, 2.0 + us]]}
    found = tuple(
        replace(each, figures={**each.figures, "points": points[each.column]})
        for each in document.results
        if (each.table, each.row) == ("table4", "inter") and each.column in points
    )
    (goal,) = [each for each in goals.goals(replace(document, results=found)) if "latency" in each.what]
    return goal.is_met, goal.measured


def test_latency_may_be_some_microseconds_longer(document):
    assert latency(document, 4) == (True, "3.000 (3.000 to 3.000); +4.0 (+4.0 to +4.0) us")
    assert latency(document, 6)[0] is False
    assert latency(document, 0.05)[0] is True


def test_goal_is_open_where_pairs_do_not_report(document):
    what = "table 3, 1/4: MPIJob to Slurm, ranks from begin to end"
    few = {each.what: each.is_met for each in goals.goals(bench_results.document(rounds=5))}
    assert few[what] is None
    spread = tuple(
        replace(each, program_s=each.program_s * (0.9 if each.round % 2 else 1.1)) if each.column == "mpijob" else each
        for each in document.results
    )
    assert {each.what: each.is_met for each in goals.goals(replace(document, results=spread))}[what] is None
    assert "| open |" in page.markdown(bench_results.document(rounds=5), [], "figures", "papers-report.html")


def test_cluster_with_two_nodes_says_what_is_missing():
    small = bench_results.document(cluster=Cluster(2, 96, 24576))
    assert grid(small, "table3").rows[2][3] == tables.NOTHING
    for text in (page.html(small, plots.plots(small)), page.markdown(small, [], "figures", "papers-report.html")):
        assert "table3/1/4/mpijob: needs 4 nodes, and 2 take jobs" in text


def test_nothing_measured_is_no_error():
    empty = results.Document("smoke", bench_results.ABOUT)
    assert plots.plots(empty) == []
    assert "not run" in page.html(empty, [])


def test_page_needs_nothing_else(document, drawn):
    text = page.html(document, drawn)
    assert text.count("<svg") == len(drawn) >= 12
    assert not re.search(r"(?:src|href)=['\"]?(?:https?:)?//|<script|@import", text)
    assert "A &amp; B &lt;1&gt;, 2 cores, 24000 MiB, Linux 6.18.0" in text
    assert all(f"id='{each.name}'" in text for each in tables.grids(document))


def test_oddities_of_the_papers_tables_are_said(document, drawn):
    for text in (page.html(document, drawn), page.markdown(document, drawn, "figures", "papers-report.html")):
        for words in ("score over score", "103.181 s", "faster at 8 ranks than at 4", "12 ranks of set-up B"):
            assert words in text


def test_machine_versions_and_load_are_said(document, drawn):
    texts = page.html(document, drawn), page.markdown(document, drawn, "figures", "papers-report.html")
    for words in ("load before runs", "Linux 6.18.0", "slurm 24.11.5, openmpi 5.0.7", "4 nodes that declare 96 CPUs"):
        assert all(words in text for text in texts)


def test_equal_results_give_equal_files(document, tmp_path):
    results.write(document, tmp_path / "results.json")
    for folder in ("one", "two"):
        made = main.write(tmp_path / "results.json", tmp_path / folder)
    for path in made:
        assert path.read_bytes() == (tmp_path / "one" / path.relative_to(tmp_path / "two")).read_bytes()
    assert not [
        path
        for path in made
        if "figures" in path.parts and str(path.name) not in (tmp_path / "one/papers.md").read_text()
    ]


def test_notes_of_whoever_measured_stand_below_the_goals(document, tmp_path, monkeypatch):
    results.write(document, tmp_path / "r.json")
    (tmp_path / "notes").write_text("Loading <libraries>\ntakes a second.\n\nAnother.\n")
    words = ["report", str(tmp_path / "r.json"), str(tmp_path), "--notes", str(tmp_path / "notes")]
    monkeypatch.setattr("sys.argv", words)
    assert main.main() == 0
    assert (
        "<li>Loading &lt;libraries&gt; takes a second.</li><li>Another.</li>"
        in (tmp_path / "papers-report.html").read_text()
    )
    reported = (tmp_path / "papers.md").read_text()
    assert (
        reported.index("## Goals")
        < reported.index("- Loading <libraries> takes a second.")
        < reported.index("## Table 3")
    )


def test_plain_kubernetes_is_compared_with_slurm_and_mpijobs(beside):
    names = [each.name for each in tables.grids(beside)]
    assert names[names.index("table6") :][:2] == ["table6", "plain"]
    found = grid(beside, "plain")
    assert len(found.rows) == 3 * 2 + 4 + 2 * 9
    assert {len(row) for row in found.rows} == {len(found.header)}
    solver = next(row for row in found.rows if row[0] == "table 3, 1/4, the solver, s")
    assert solver[-2:] == ("1.020 (1.020 to 1.020)", "0.990 (0.990 to 0.990)")
    text = page.html(beside, plots.plots(beside))
    assert (
        "4 nodes on which pods can request 2 CPUs and 24000 MiB each; containerd 1.7.24, kubelet v1.36.3; sto" in text
    )
    assert "Its workers request no more CPUs" in text
    assert sum("plain Kubernetes" in plot.svg for plot in plots.plots(beside)) >= 9


def test_nothing_is_said_of_a_plain_kubernetes_that_was_not_measured(document, beside):
    without = replace(beside, results=document.results, about=document.about)
    for each in (document, without):
        for text in (page.html(each, plots.plots(each)), page.markdown(each, [], "figures", "papers-report.html")):
            assert "plain" not in text.lower()


def test_rows_without_a_plain_kubernetes_are_not_beside_it(beside):
    few = tuple(each for each in beside.results if each.column != "plain-kubernetes" or each.table == "table4")
    found = grid(replace(beside, results=few), "plain")
    assert {row[0].partition(",")[0] for row in found.rows} == {"table 4"}
    failed = tuple(replace(each, error="x") if each.column == "plain-kubernetes" else each for each in beside.results)
    assert "plain" not in [each.name for each in tables.grids(replace(beside, results=failed))]
