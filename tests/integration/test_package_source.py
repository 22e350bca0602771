"""A package's source comes from the first address that has it, by apt's own downloader, and must be the right one."""

import pytest

from isthmus.artifacts import package, recipe
from isthmus.artifacts.errors import ChecksumError
from isthmus.clients.process import ProcessError
from isthmus.filters.errors import InputError
from tests.support.files.releases import sha256

CONTENT = b"no archive"


class NeverGo:
    """Stands for Go where nothing may come so far."""


@pytest.fixture
def build(tmp_path):
    """Begin to build from a mirror that is a folder."""
    (tmp_path / "mirror").mkdir()
    (tmp_path / "mirror/source").write_bytes(CONTENT)
    (tmp_path / "work").mkdir()
    workshop = package.Workshop(NeverGo(), [f"deb file://{tmp_path}/mirror trixie main"], [])
    said = []

    def call(digest, *urls):
        known = recipe.Recipe(tmp_path, "1.2.3", "trixie", 0, digest, list(urls), [], "0" * 32)
        package.build(known, workshop, tmp_path / "work", said.append)

    call.said = said
    return call


def test_next_address_is_asked_and_the_source_checked(build):
    with pytest.raises(ProcessError, match="tar"):
        build(sha256(CONTENT), "{mirror}/missing", "{mirror}/source")
    assert len(build.said) == 1
    assert build.said[0].endswith("mirror/source")


def test_wrong_source_ends_it(build):
    with pytest.raises(ChecksumError, match=rf"mirror/source: sha256 is {sha256(CONTENT)}, expected 0+; do not use it"):
        build("0" * 64, "{mirror}/source", "{mirror}/source")


def test_source_that_is_nowhere_is_reported_with_each_address(build):
    with pytest.raises(InputError) as reported:
        build("0" * 64, "{mirror}/missing", "{mirror}/gone")
    assert all(name in str(reported.value) for name in ("mirror/missing", "mirror/gone", "add one that has it"))
