"""Layers put on one another are what the OCI image specification says, whatever their names are."""

import tarfile

import pytest

from isthmus.images import archive, layers
from isthmus.images.errors import HostileImageError
from isthmus.images.tree import Kind, TreeError
from isthmus.model import images
from tests.support.files.layers import entry, write

IMAGE = images.parse("registry:5000/app")


def put(*files, wanted=lambda: None, **how):
    return layers.merge(IMAGE, map(archive.entries, files), wanted, **how)


@pytest.fixture
def merge(tmp_path):
    def call(*each, form=tarfile.PAX_FORMAT):
        files = [write(tmp_path / f"{number}.tar", entries, form) for number, entries in enumerate(each)]
        return put(*files)

    return call


def names(merged):
    return sorted(name for name, _ in merged.tree.files())


def text(merged, name):
    source = merged.tree.find(name).source
    with open(source.path, "rb") as file:
        file.seek(source.offset)
        return file.read(source.size).decode()


def test_owner_group_mode_and_time_are_those_of_the_image(merge):
    merged = merge(
        [entry("home/jovyan", "folder", mode=0o2750, uid=1000, gid=100, mtime=1234.5), entry("bin/su", mode=0o4755)]
    )
    home = merged.tree.find("home/jovyan")
    assert (home.kind, home.mode, home.uid, home.gid, home.mtime_s) == (Kind.FOLDER, 0o2750, 1000, 100, 1234)
    assert merged.tree.find("bin/su").mode == 0o4755
    # Nobody said anything of these.
    assert (merged.tree.find("home").mode, merged.tree.find("home").uid) == (0o755, 0)


def test_root_may_have_an_owner(merge):
    root = merge([entry("./", "folder", mode=0o700, uid=5)]).tree.root
    assert (root.mode, root.uid) == (0o700, 5)


def test_later_layer_replaces_and_keeps(merge):
    merged = merge(
        [
            entry("etc", "folder"),
            entry("etc/a", value="old"),
            entry("etc/b", value="b"),
            entry("x", "folder"),
            entry("x/y"),
        ],
        [entry("etc", "folder", mode=0o700), entry("etc/a", value="new"), entry("x", value="a file now")],
    )
    assert names(merged) == ["etc", "etc/a", "etc/b", "x"]
    assert (text(merged, "etc/a"), text(merged, "etc/b"), text(merged, "x")) == ("new", "b", "a file now")
    assert merged.tree.find("etc").mode == 0o700


def test_whiteouts_take_away_what_is_below(merge):
    merged = merge(
        [entry("a/b/c"), entry("a/d"), entry("e/f"), entry("e/g/h"), entry("i")],
        [
            entry("a/.wh.b"),
            entry("e/.wh..wh..opq"),
            entry("e/new"),
            entry("e/g/new"),
            entry(".wh.i"),
            entry(".wh.none"),
        ],
    )
    assert names(merged) == ["a", "a/d", "e", "e/g", "e/g/new", "e/new"]


def test_opaque_whiteout_may_come_last(merge):
    assert names(merge([entry("e/f")], [entry("e/new"), entry("e/.wh..wh..opq")])) == ["e", "e/new"]


def test_notes_of_aufs_are_left_out(merge):
    assert names(merge([entry(".wh..wh.plnk", "folder"), entry("a")])) == ["a"]


def test_hard_links_are_one_file(merge):
    merged = merge([entry("a", value="x", uid=7)], [entry("b", "hard", "a")], [entry("a", value="other")])
    assert (text(merged, "b"), merged.tree.find("b").uid, text(merged, "a")) == ("x", 7, "other")
    both = merge([entry("a"), entry("b", "hard", "./a")])
    assert both.tree.find("a") is both.tree.find("b")


def test_names_below_links_lead_where_the_links_do(merge):
    merged = merge(
        [entry("usr/bin", "folder"), entry("bin", "link", "usr/bin"), entry("abs", "link", "/usr/../usr/bin")],
        [entry("bin/one"), entry("abs/two"), entry("usr/bin/.wh.none")],
    )
    assert [name for name in names(merged) if name.startswith("usr/bin/")] == ["usr/bin/one", "usr/bin/two"]
    assert merged.tree.find("bin").kind is Kind.LINK


@pytest.mark.parametrize("name", ["../../../etc/passwd", "/etc/passwd", "a/../../etc/passwd", "up/etc/passwd"])
def test_no_name_leads_out_of_the_image(merge, name):
    merged = merge([entry("up", "link", "../../../.."), entry(name, value="x")])
    assert text(merged, "etc/passwd") == "x"


@pytest.mark.parametrize(
    ("entries", "why"),
    [
        ([entry("a"), entry("a/b")], "'a/b' lies below a file"),
        ([entry("a", "link", "b"), entry("b", "link", "a"), entry("a/c")], "'a/c' leads through too many links"),
        ([entry("a", "hard", "none")], "'none' is not there"),
        ([entry("a", "folder"), entry("b", "hard", "a")], "'b' is a hard link to a folder"),
        ([entry("a", "link", "")], "'a' leads nowhere, or to a path of more than 4095 bytes"),
        ([entry("a", "link", "x" * 4096)], "'a' leads nowhere, or to a path of more than 4095 bytes"),
        ([entry("a/" + "x" * 256)], "'a/x{98}' has a name of more than 255 bytes"),
        ([entry("\u20ac" * 86 + "/a")], ".* has a name of more than 255 bytes"),
        ([entry("a", pax_headers={"path": "b\0c"})], ".* has a NUL in its name or target"),
    ],
)
def test_name_that_leads_nowhere_is_refused(merge, entries, why):
    with pytest.raises(HostileImageError, match=f"app:latest is refused: in layer 1, {why}; ask the image's author"):
        merge(entries)


def test_ids_that_a_pod_does_not_have_are_nobodys(merge):
    merged = merge(
        [entry("a", uid=70000, gid=4294967295), entry("b", uid=-5), entry("c", uid=65535)], form=tarfile.GNU_FORMAT
    )
    assert [(merged.tree.find(name).uid, merged.tree.find(name).gid) for name in "abc"] == [
        (65534, 65534),
        (65534, 0),
        (65535, 0),
    ]
    assert merged.strangers == 2


def test_all_is_roots_for_containers_that_know_nobody_else(tmp_path):
    path = write(tmp_path / "layer", [entry("a", uid=1000, gid=50, mode=0o4755), entry("b", uid=70000)])
    merged = put(path, root_alone=True)
    assert {(inode.uid, inode.gid) for _, inode in merged.tree.files()} == {(0, 0)}
    assert merged.strangers == 0


def test_ten_thousand_owners(merge):
    merged = merge([entry(f"home/u{number}", uid=number, gid=number) for number in range(10_000)])
    assert {inode.uid for name, inode in merged.tree.files() if "/" in name} == set(range(10_000))


def test_devices_are_left_out_and_fifos_are_not(merge):
    assert names(merge([entry("dev/null", "device"), entry("run/pipe", "fifo")])) == ["run", "run/pipe"]


def test_longest_names_and_links_are_taken(merge):
    name = "\u20ac" * 85
    merged = merge([entry(name, "link", "x" * 4095), entry(f"d/{name}/{name}")])
    assert {name, f"d/{name}/{name}"} <= set(names(merged))


def test_long_and_strange_names(merge):
    long = "/".join(["x" * 200] * 5)
    merged = merge([entry(long), entry("new\nline"), entry("not utf-8 \udcff")], form=tarfile.GNU_FORMAT)
    assert {long, "new\nline", "not utf-8 \udcff"} <= set(names(merged))


@pytest.mark.parametrize("content", [b"x" * 2048, b"\x1f\x8b" + b"x" * 2048, bytes(512) + b"x" * 512])
def test_what_is_no_archive_is_refused(tmp_path, content):
    path = tmp_path / "layer"
    path.write_bytes(content)
    if content.startswith(b"\0"):
        assert names(put(path)) == []
        return
    with pytest.raises(HostileImageError, match="in layer 1, it is no archive"):
        put(path)


def test_garbage_between_entries_is_refused(tmp_path):
    path = write(tmp_path / "layer", [entry("a", value="x"), entry("b")])
    content = bytearray(path.read_bytes())
    content[1024:1536] = b"y" * 512
    path.write_bytes(content)
    with pytest.raises(HostileImageError, match="what is at 1024 is no header"):
        put(path)


@pytest.mark.parametrize("content", [b"", bytes(1024)])
def test_layer_may_be_empty(tmp_path, content):
    (tmp_path / "layer").write_bytes(content)
    assert names(put(tmp_path / "layer")) == []


def test_file_longer_than_its_layer_is_refused(tmp_path):
    path = write(tmp_path / "layer", [entry("a", value="x" * 5000)])
    path.write_bytes(path.read_bytes()[:2048])
    with pytest.raises(HostileImageError, match=r"in layer 1, "):
        put(path)


def test_header_without_end_is_not_read(tmp_path):
    info = tarfile.TarInfo("x")
    info.type, info.size = tarfile.XHDTYPE, 1 << 32
    (tmp_path / "layer").write_bytes(info.tobuf() + bytes(4096))
    with pytest.raises(HostileImageError, match="a header of"):
        put(tmp_path / "layer")


def test_too_many_files_are_refused(merge, monkeypatch):
    monkeypatch.setattr(layers, "MAX_FILES", 3)
    with pytest.raises(HostileImageError, match="more than 3 files"):
        merge([entry("a"), entry("b")], [entry("c"), entry("d")])


def test_reading_ends_when_nobody_waits(tmp_path):
    path = write(tmp_path / "layer", [entry(f"{number}") for number in range(1000)])

    def gone():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        put(path, wanted=gone)


def test_tree_error_is_for_the_caller(merge):
    with pytest.raises(TreeError):
        merge([entry("a")]).tree.find("none/such")
