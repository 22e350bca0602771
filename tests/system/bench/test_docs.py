"""Pages for sites that measure, the tutorial from sbatch to an MPIJob among them, typed by a user in their order."""

import pytest

from tests.support.clusters.doc_pages import TYPED


@pytest.mark.parametrize("page", TYPED["bench"])
def test_page_does_what_it_says(reader, measuring, page):
    reader.with_kubernetes("mpijobs").read(page)
