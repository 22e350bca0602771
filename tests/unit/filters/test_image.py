"""The node image's recipe."""

import pytest

from isthmus.filters import image
from isthmus.filters.errors import InputError

TARGETS = """bookworm http://mirror.example/debian/ main
bookworm http://mirror.example/debian/ contrib
bookworm-updates http://mirror.example/debian/ main
bookworm-security http://mirror.example/security/ main
nodistro http://other.example/ main
"""
DUMP = """Acquire::AllowInsecureRepositories "0";
Acquire::http::Proxy "http://proxy.example:3142";
Acquire::Check-Valid-Until "false";
Acquire::IndexTargets::deb::Packages::Optional "0";
"""
RECIPE = {
    "suite": "trixie",
    "packages": ["systemd", "python3"],
    "sources": ["deb http://mirror.example/debian/ trixie main"],
    "options": ['Acquire::Check-Valid-Until "false";'],
}


def test_apt_sources_follow_the_deployers_mirrors():
    assert image.local_apt_sources(TARGETS, "trixie") == [
        "deb http://mirror.example/debian/ trixie main",
        "deb http://mirror.example/security/ trixie-security main",
        "deb http://mirror.example/debian/ trixie-updates main",
    ]


@pytest.mark.parametrize("targets", ["", "noble http://mirror.example/ubuntu main\n"])
def test_apt_sources_without_a_debian_mirror_are_refused(targets):
    with pytest.raises(InputError, match=r"names no Debian mirror; run on Debian"):
        image.local_apt_sources(targets, "trixie")


def test_apt_options_keep_proxies_and_date_checks():
    assert image.local_apt_options(DUMP) == [
        'Acquire::http::Proxy "http://proxy.example:3142";',
        'Acquire::Check-Valid-Until "false";',
    ]


def test_image_key_changes_with_the_recipe():
    other = {**RECIPE, "packages": ["systemd"]}
    assert image.local_image_key(RECIPE) == image.local_image_key(dict(reversed(RECIPE.items())))
    assert image.local_image_key(RECIPE) != image.local_image_key(other)


def test_bootstrap_command_writes_to_a_part_file():
    command = image.local_bootstrap_command(RECIPE, "/cache/node.tar")
    assert "--include=systemd,python3" in command
    assert command[-3:] == ["trixie", "/cache/node.tar.part", *RECIPE["sources"]]
