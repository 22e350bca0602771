import pytest

from tests.support.clusters.cluster import ROOT
from tests.support.clusters.doc_pages import TYPED, linked, renamed

NAMES = {"ctl:5000": "head:5001", "alice": "bob", "bob": "carol", "c1": "node7"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("docker://ctl:5000/alice/tool:1", "docker://head:5001/bob/tool:1"),
        ("--users bob # alice lets bob in", "--users carol # bob lets carol in"),
        ("$job.c1 alice-x c12", "$job.node7 alice-x c12"),
        ("", ""),
    ],
)
def test_names_of_the_site_stand_for_the_pages(text, expected):
    assert renamed(text, NAMES) == expected


def test_without_names_a_text_stays():
    assert renamed("alice", {}) == "alice"


def test_reader_has_the_files_that_a_page_links_to():
    page = ROOT / "docs/users/mpi.md"
    names = {path.name for path in linked(page, page.read_text())}
    assert {"ring.c", "mpi-optimized.sh", "hybrid.yaml"} <= names
    assert not [name for name in names if name.endswith(".md")]


def test_no_page_is_typed_twice():
    pages = [page for pages in TYPED.values() for page in pages]
    assert len(pages) == len(set(pages))
