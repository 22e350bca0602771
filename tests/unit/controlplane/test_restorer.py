"""Data are brought where they are wanted; a start that breaks off on the way is made again."""

from hashlib import sha256

import pytest

from isthmus.clients.process import ProcessError
from isthmus.controlplane.data import claims, node_disk, restorer
from isthmus.controlplane.data.claims import Source
from isthmus.controlplane.data.restorer import Restorer
from isthmus.controlplane.data.snapshots import Snapshot
from isthmus.controlplane.errors import ControlPlaneError
from isthmus.controlplane.layout import Layout
from isthmus.controlplane.settings import DataLocation

HOME, NODE = DataLocation


@pytest.fixture
def layout(tmp_path):
    layout = Layout(tmp_path / "home")
    layout.snapshots.mkdir(parents=True)
    return layout


@pytest.fixture
def start(layout, tmp_path):
    """Restore on a node; etcd then writes a word to its data, if it is given one."""

    def restored(node, wanted=NODE, restore=unpack, word=""):
        (tmp_path / node).mkdir(mode=0o700, exist_ok=True)
        disk = node_disk.of(layout, tmp_path / node)
        found = Restorer(layout, wanted, disk, node, restore).run()
        if word:
            (found.folder / "member").mkdir(parents=True, exist_ok=True)
            (found.folder / "member/db").write_text(word)
        return found

    return restored


def save(layout, claim, revision, word, is_final=False):
    """What etcd's snapshot of some data would be."""
    content = word.encode().ljust(512)
    path = layout.snapshots / Snapshot(claim.generation, revision, is_final).name
    path.write_bytes(content + sha256(content).digest())
    return path


def unpack(snapshot, folder):
    (folder / "member").mkdir(parents=True)
    (folder / "member/db").write_bytes(snapshot.read_bytes()[:512].rstrip())


def refuse(snapshot, folder):
    folder.mkdir()
    raise ProcessError("etcdutl", 1, "ended with status 1", "", "bad file")


def content(found):
    return (found.folder / "member/db").read_text()


def test_cluster_that_begins_on_a_disk_stays_there(start, layout):
    first = start("c1", word="one")
    assert (first.source, first.claim.generation, first.warnings) == (Source.NOTHING, 1, ())
    again = start("c1")
    assert (again.source, again.claim, content(again)) == (Source.NODE, first.claim, "one")
    assert not layout.etcd.exists()


def test_home_that_was_never_left_has_no_claim(start, layout):
    found = start("c1", HOME, word="one")
    assert (found.folder, found.source, found.claim) == (layout.etcd, Source.NOTHING, None)
    assert start("c1", HOME).source is Source.HOME
    assert not layout.claim.exists()


def test_last_snapshot_goes_to_another_node(start, layout):
    save(layout, start("c1", word="one").claim, 7, "one", is_final=True)
    moved = start("c2", word="two")
    assert (moved.source, moved.claim.generation, moved.warnings) == (Source.SNAPSHOT, 2, ())
    # The first node's data are older now, also when there is no snapshot of the second's yet.
    back = start("c1")
    assert (content(back), back.source, back.claim.generation) == ("one", Source.SNAPSHOT, 3)


def test_what_a_dead_node_had_not_saved_is_reported(start, layout):
    save(layout, start("c1", word="one").claim, 7, "zero")
    (warning,) = start("c2").warnings
    assert "what was written later, on c1, is lost" in warning


def test_dead_before_its_first_snapshot_is_reported(start):
    start("c1", word="one")
    found = start("c2")
    assert (found.source, found.warnings) == (
        Source.NOTHING,
        ("your cluster is empty: what it had on c1 was never saved",),
    )


@pytest.mark.parametrize("damage", [b"short", b"x" * 544])
@pytest.mark.parametrize("older_is_final", [False, True])
def test_damaged_snapshot_is_reported_and_the_one_before_used(start, layout, damage, older_is_final):
    claim = start("c1", word="one").claim
    save(layout, claim, 7, "older", older_is_final)
    save(layout, claim, 8, "newer", is_final=True).write_bytes(damage)
    found = start("c2")
    assert content(found) == "older"
    assert "0008-final.db is damaged: its hash is wrong; the one before it is next" in found.warnings[0]
    assert "is lost" in found.warnings[1]


def test_whole_snapshot_that_fails_is_not_replaced_by_an_older(start, layout):
    claim = start("c1", word="one").claim
    for revision in (7, 8):
        save(layout, claim, revision, "one")
    with pytest.raises(
        ControlPlaneError, match=r"(?s)0008.db could not be restored: .*bad file; start again, or remove"
    ):
        start("c2", restore=refuse)
    assert content(start("c2")) == "one"


def test_no_usable_snapshot_is_no_empty_cluster(start, layout):
    save(layout, start("c1", word="one").claim, 7, "one").write_bytes(b"short")
    claim = layout.claim.read_text()
    with pytest.raises(ControlPlaneError, match=r"each snapshot in .* is damaged; bring back a whole one"):
        start("c2")
    assert layout.claim.read_text() == claim
    # Nothing was spoilt on the way.
    assert content(start("c1")) == "one"


def test_move_to_the_home_and_back(start, layout):
    save(layout, start("c1", word="one").claim, 7, "zero")
    home = start("c1", HOME, word="two")
    assert (home.source, home.folder, home.claim.data) == (Source.NODE, layout.etcd, HOME)
    assert not layout.snapshots.exists()
    back = start("c1")
    assert (back.source, content(back), back.claim.base) == (Source.HOME, "two", claims.HOME)
    # Before the first snapshot the home has the newest that is to be had elsewhere.
    assert content(start("c3")) == "two"


def test_disk_that_was_not_looked_at_is_no_lost_disk(start, layout):
    save(layout, start("c1", word="one").claim, 7, "zero")
    with pytest.raises(ControlPlaneError, match="since a moment ago; start again"):
        Restorer(layout, HOME, None, "c1", unpack).run()
    # Without the claim the snapshot is the newest there is.
    layout.claim.unlink()
    found = Restorer(layout, HOME, None, "c1", unpack).run()
    assert (content(found), found.folder) == ("zero", layout.etcd)


def test_move_to_the_home_from_another_node(start, layout):
    save(layout, start("c1", word="one").claim, 7, "saved", is_final=True)
    found = start("c2", HOME)
    assert (content(found), found.folder) == ("saved", layout.etcd)


@pytest.mark.parametrize("broken", ["durable.move", "durable.write", "claims.write", "_sync_tree"])
@pytest.mark.parametrize("wanted", [NODE, HOME])
def test_start_that_breaks_off_is_made_again(start, layout, monkeypatch, broken, wanted):
    save(layout, start("c1", word="one").claim, 7, "one", is_final=True)

    def die(*_):
        raise KeyboardInterrupt

    if (broken, wanted) != ("durable.write", HOME):
        with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
            patched.setattr(f"isthmus.controlplane.data.restorer.{broken}", die)
            start("c2", wanted)
    found = start("c3", wanted)
    assert (content(found), found.warnings) == ("one", ())
    assert not [path.name for path in found.folder.parent.iterdir() if path.name.startswith(".etcd-")]


def test_restore_that_outlives_its_start_writes_elsewhere(start, layout):
    save(layout, start("c1", word="one").claim, 7, "one", is_final=True)
    folders = []

    def die(snapshot, folder):
        folders.append(folder)
        raise OSError("full")

    for _ in range(2):
        with pytest.raises(ControlPlaneError):
            start("c2", restore=die)
    assert folders[0] != folders[1]


def test_sync_reaches_every_file(tmp_path, monkeypatch):
    (tmp_path / "a/b").mkdir(parents=True)
    (tmp_path / "a/b/c").touch()
    synced = set()
    monkeypatch.setattr(restorer.durable, "sync", synced.add)
    restorer._sync_tree(tmp_path)
    assert synced == {tmp_path, tmp_path / "a", tmp_path / "a/b", tmp_path / "a/b/c"}
