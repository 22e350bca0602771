"""Pages about workloads, typed in their order by a user who has just read them."""

import pytest

from tests.support.clusters.doc_pages import TYPED


@pytest.mark.parametrize("page", TYPED["workloads"])
def test_page_does_what_it_says(reader, workload, page):
    reader.with_kubernetes("mpijobs").read(page)
