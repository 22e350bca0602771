"""The module apptainer_state: the same list of package indexes as apt-get's, without apt's cache of packages."""

from types import SimpleNamespace

import pytest

from isthmus.filters.images.image import local_apt_sources
from tests.support import ansible_modules

MIRROR = "http://mirror.example/debian"


@pytest.fixture
def module():
    return ansible_modules.load("roles/apptainer/library/apptainer_state.py")


class Apt:
    """What python-apt 2.9 has of a host with Debian's own sources."""

    def __init__(self, *sources):
        self.began = []
        self.found = [
            SimpleNamespace(
                dist=dist, uri=f"{MIRROR}/", index_files=[SimpleNamespace(describe=each) for each in described]
            )
            for dist, described in sources
        ]

    def init_config(self):
        self.began.append("config")

    def init_system(self):
        self.began.append("system")

    def SourceList(self):  # noqa: N802 (apt's name)
        return SimpleNamespace(read_main_list=lambda: self.began.append("list"), list=self.found)


def packages(where, component="main"):
    path = "/var/lib/apt/lists/mirror"
    kinds = ("amd64 Packages", "all Packages", "Translation-en")
    return [f"{MIRROR} {where}/{component} {kind} ({path}_{kind.split()[0]})" for kind in kinds]


def test_each_component_is_listed_once(module):
    apt = Apt(
        ("trixie", packages("trixie") + packages("trixie", "contrib")), ("trixie-updates", packages("trixie-updates"))
    )
    assert module.listed(apt).splitlines() == [
        f"trixie {MIRROR}/ main",
        f"trixie {MIRROR}/ contrib",
        f"trixie-updates {MIRROR}/ main",
    ]
    assert apt.began == ["config", "system", "list"]


def test_filter_reads_the_mirror_of_it(module):
    assert local_apt_sources(module.listed(Apt(("trixie", packages("trixie")))), "sid") == [f"deb {MIRROR}/ sid main"]


def test_sources_of_packages_and_flat_repositories_are_none(module):
    described = [f"{MIRROR} trixie/main Sources (/var/lib/apt/lists/mirror_Sources)", f"{MIRROR} ./ Packages (/x)"]
    assert module.listed(Apt(("trixie", described))) == ""
