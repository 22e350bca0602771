"""A package's source comes from the first address that has it, by apt's own downloader, and must be the right one."""

import pytest

from isthmus.artifacts import package, recipe
from isthmus.artifacts.errors import ChecksumError
from isthmus.filters.errors import InputError
from tests.support.files.releases import sha256

CONTENT = b"no archive"


@pytest.fixture
def fetch(tmp_path):
    """Bring the source from a mirror that is a folder; the progress that was reported is its `said`."""
    (tmp_path / "mirror").mkdir()
    (tmp_path / "mirror/source").write_bytes(CONTENT)
    targets = f"trixie file://{tmp_path}/mirror main\n"
    said = []

    def call(digest, *urls):
        known = recipe.Recipe(tmp_path, "1.2.3", "trixie", 0, digest, list(urls), [], "", False, "0" * 32)
        package.fetch(known, {"cache": tmp_path / "cache", "targets": targets}, tmp_path / "archive", said.append)
        return (tmp_path / "archive").read_bytes()

    call.said = said
    return call


def test_next_address_is_asked_and_the_source_checked(fetch):
    assert fetch(sha256(CONTENT), "{mirror}/missing", "{mirror}/source") == CONTENT
    assert len(fetch.said) == 1
    assert fetch.said[0].endswith("mirror/source")


def test_wrong_source_ends_it(fetch):
    with pytest.raises(ChecksumError, match=rf"mirror/source: sha256 is {sha256(CONTENT)}, expected 0+; do not use it"):
        fetch("0" * 64, "{mirror}/source", "{mirror}/source")


def test_source_that_is_nowhere_is_reported_with_each_address(fetch):
    with pytest.raises(InputError) as reported:
        fetch("0" * 64, "{mirror}/missing", "{mirror}/gone")
    assert all(name in str(reported.value) for name in ("mirror/missing", "mirror/gone", "add an address that has it"))
