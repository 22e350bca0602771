import pytest

from isthmus.clients import conntrack


def folder(tmp_path, **values):
    for name, value in values.items():
        (tmp_path / f"nf_conntrack_{name}").write_text(f"{value}\n")
    return tmp_path


@pytest.mark.parametrize(("count", "alarmed"), [(0, False), (800, False), (801, True), (1000, True)])
def test_table_that_is_nearly_full_is_a_problem(tmp_path, count, alarmed):
    found = conntrack.table(folder(tmp_path, count=count, max=1000))
    assert str(found).startswith(f"{count} of 1000 connections ({count // 10} %)")
    assert ("network_conntrack_max" in found.problem) is alarmed


def test_host_that_tracks_nothing_has_no_table(tmp_path):
    assert conntrack.table(tmp_path) is None


def test_settings_go_one_way_only(tmp_path):
    folder(tmp_path, max=1000, established=432000)
    for value, expected in ((2000, 2000), (1500, 2000)):
        conntrack.at_least("max", value, tmp_path)
        assert int((tmp_path / "nf_conntrack_max").read_text()) == expected
    for value, expected in ((7440, 7440), (9000, 7440)):
        conntrack.at_most("established", value, tmp_path)
        assert int((tmp_path / "nf_conntrack_established").read_text()) == expected


def test_setting_that_cannot_be_written_stays(tmp_path):
    conntrack.at_least("max", 5, tmp_path)
    assert list(tmp_path.iterdir()) == []
