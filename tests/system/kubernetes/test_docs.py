"""Pages about a user's Kubernetes, typed in their order by a user who has just read them."""

import pytest

from tests.support.clusters.doc_pages import TYPED


@pytest.fixture(scope="module")
def at_home(reader, mine):
    """The reader, whose Kubernetes is up."""
    return reader.with_kubernetes()


@pytest.mark.parametrize("page", TYPED["kubernetes"])
def test_page_does_what_it_says(at_home, page):
    at_home.read(page)
