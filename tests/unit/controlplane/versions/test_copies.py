"""The copy of data: whole, without what etcd has allocated ahead, and put back after a death at any moment."""

import pytest

from isthmus.controlplane.versions import copies

ZEROS = 2 << 20


@pytest.fixture
def data(tmp_path):
    folder = tmp_path / "etcd"
    for name, content in {"member/snap/db": b"one", "member/wal/0.wal": b"log" + bytes(ZEROS)}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    (folder / "member/wal/1.tmp").write_bytes(bytes(ZEROS))
    return folder


def change(data):
    (data / "member/snap/db").write_bytes(b"two")


def db(data):
    return (data / "member/snap/db").read_bytes()


def test_copy_is_equal_and_takes_no_room_for_zeros(data, tmp_path):
    copies.make(data)
    copy = tmp_path / "etcd-before"
    assert (copy / "member/wal/0.wal").read_bytes() == b"log" + bytes(ZEROS)
    assert (copy / "member/wal/0.wal").stat().st_blocks * 512 < ZEROS
    assert not (copy / "member/wal/1.tmp").exists()
    assert not [path for path in copy.rglob("*") if path.stat().st_mode & 0o077]


def test_copy_comes_back_and_is_gone_then(data, tmp_path):
    copies.make(data)
    change(data)
    assert copies.exists(data)
    copies.put_back(data)
    assert (db(data), [path.name for path in tmp_path.iterdir()]) == (b"one", ["etcd"])
    # Once more is nothing.
    change(data)
    copies.put_back(data)
    assert db(data) == b"two"


def test_new_copy_replaces_an_old_one(data):
    copies.make(data)
    change(data)
    copies.make(data)
    copies.put_back(data)
    assert db(data) == b"two"


def test_removed_copy_leaves_the_data_alone(data, tmp_path):
    copies.make(data)
    copies.remove(data)
    copies.remove(data)
    assert ([path.name for path in tmp_path.iterdir()], db(data)) == (["etcd"], b"one")


def test_disk_without_room_leaves_nothing(data, tmp_path, monkeypatch):
    def full(path):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(copies.durable, "sync", full)
    with pytest.raises(OSError, match="No space"):
        copies.make(data)
    assert [path.name for path in tmp_path.iterdir()] == ["etcd"]
    assert not copies.exists(data)


@pytest.mark.parametrize("moves", [0, 1])
def test_way_back_that_was_cut_off_is_gone_to_its_end(data, tmp_path, monkeypatch, moves):
    copies.make(data)
    change(data)
    real, done = copies.durable.move, []

    def dies(temporary, path):
        if len(done) == moves:
            raise KeyboardInterrupt
        done.append(path)
        real(temporary, path)

    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(copies.durable, "move", dies)
        copies.put_back(data)
    copies.put_back(data)
    assert (db(data), [path.name for path in tmp_path.iterdir()]) == (b"one", ["etcd"])
