"""The module slurm_apt: nothing of another suite is in reach but Slurm and what it alone needs newer."""

import pytest

from tests.support import ansible_modules

TARGETS = "trixie http://mirror/debian/\ntrixie-updates http://mirror/debian/\nforky http://other/\n"


@pytest.fixture
def module(monkeypatch, tmp_path):
    loaded = ansible_modules.load("roles/slurm/library/slurm_apt.py")
    monkeypatch.setattr(loaded, "PREFERENCES", tmp_path / "preferences")
    monkeypatch.setattr(loaded, "SOURCES", tmp_path / "sources")
    return loaded


def records(text):
    return [tuple(line.partition(": ")[2] for line in record.splitlines()[-3:]) for record in text.split("\n\n")]


def test_version_alone_pins_slurm_and_no_more(module):
    assert records(module.preferences("24.11", "", "trixie")) == [("src:slurm-wlm", "version 24.11*", "990")]
    assert module.sources("", "trixie", "") == ""


def test_other_suite_is_out_of_reach_but_for_slurm(module):
    found = records(module.preferences("26.05", "forky", "trixie"))
    assert ("*", "release n=forky", "-1") in found
    assert found[0] == ("src:slurm-wlm", "version 26.05*", "990")
    assert {package for package, _, priority in found if int(priority) > 500} == {
        "src:slurm-wlm",
        "src:llhttp",
        "src:hwloc",
    }


def test_other_suite_comes_from_where_the_host_has_its_own(module):
    assert module.mirror(TARGETS, "trixie") == "http://mirror/debian/"
    assert "URIs: http://mirror/debian/\nSuites: forky trixie-backports" in module.sources(
        "forky", "trixie", "http://mirror/debian/"
    )
    with pytest.raises(ValueError, match="no source for bookworm here; bring"):
        module.mirror(TARGETS, "bookworm")


def test_files_are_written_once_and_removed(module, tmp_path):
    assert ansible_modules.run(module, version="24.11")["changed"]
    assert not ansible_modules.run(module, version="24.11")["changed"]
    assert ansible_modules.run(module, version="")["paths"] == [str(tmp_path / "preferences")]
    assert list(tmp_path.iterdir()) == []


def test_lists_are_read_where_apt_has_none(module, monkeypatch, tmp_path):
    lists, release, mirror = (tmp_path / name for name in ("lists", "release", "mirror"))
    release.write_text("VERSION_CODENAME=trixie\n")
    mirror.write_text(TARGETS)
    lists.write_text("")
    monkeypatch.setattr(module, "RELEASE", release)
    monkeypatch.setattr(module, "TARGETS", ["cat", str(lists)])
    monkeypatch.setattr(module, "UPDATE", ["cp", str(mirror), str(lists)])
    refused = ansible_modules.run(module, suite="forky", _ansible_check_mode=True)
    assert "no source for trixie" in refused["msg"]
    assert lists.read_text() == ""
    assert ansible_modules.run(module, suite="forky")["changed"]
    assert "URIs: http://mirror/debian/" in (tmp_path / "sources").read_text()
