"""The layer's pages, typed in their order by a user who has just read them, or by an administrator."""

import pytest

from tests.support.clusters.doc_pages import TYPED


@pytest.mark.parametrize("page", TYPED["slurm"])
def test_page_does_what_it_says(reader, page):
    reader.read(page)
