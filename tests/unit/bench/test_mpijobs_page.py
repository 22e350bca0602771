"""The part of a page that counts MPIJobs, beside the one that another program writes."""

from tests.bench import mpijobs_page

RUN = {"mpi": "openmpi", "workers": 2, "seconds": 4.0, "hosts": 2, "problem": "", "load": 1.5}
RESULTS = {
    "date": "2026-01-02T03:04:05Z",
    "machine": {"cores": 2, "processor": "a processor"},
    "runs": [
        RUN,
        RUN | {"seconds": 6.0, "load": 2.5},
        RUN | {"seconds": 9.0, "hosts": 1, "problem": "openmpi-2: Succeeded, 0 failed, ranks on 1 hosts"},
        RUN | {"mpi": "mpich", "workers": 64},
    ],
}


def test_each_mpi_and_width_has_a_row_and_each_failure_a_line():
    reported = mpijobs_page.part(RESULTS)
    assert "| openmpi | 2 | 2 of 3 | 6.0 | 9.0 | 1.5 to 2.5 |" in reported
    assert "| mpich | 64 | 1 of 1 | 4.0 | 4.0 | 1.5 to 1.5 |" in reported
    assert "- openmpi-2: Succeeded, 0 failed, ranks on 1 hosts\n" in reported
    assert "2026-01-02" in reported


def test_publishing_again_replaces_the_part_alone(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("# Cases\n\nother\n")
    assert mpijobs_page.of(page.read_text()) == ""
    mpijobs_page.publish(RESULTS, page)
    first = page.read_text()
    mpijobs_page.publish(RESULTS, page)
    assert page.read_text() == first
    assert (first.startswith("# Cases\n\nother\n\n## "), first.count("## ")) == (True, 1)
    assert mpijobs_page.before(first) == "# Cases\n\nother\n"
    assert f"# Cases\n\nother\n{mpijobs_page.of(first)}" == first
