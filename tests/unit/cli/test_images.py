"""`isthmus images`, as a user types it."""

import json
import os
import time

import pytest

from isthmus.cli.main import main
from isthmus.images.cache import Cache
from isthmus.images.known import Known
from isthmus.images.store.keeping import Store
from isthmus.model.images import parse

DAY_S = 86400
OLD, YOUNG = f"sha256:12{'0' * 62}", f"sha256:13{'0' * 62}"


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """An old image without a name, and a young one of a pod."""
    monkeypatch.setenv("HOME", str(tmp_path))
    folder = tmp_path / ".isthmus/images"
    (tmp_path / ".isthmus").mkdir(mode=0o700)
    for digest, unused_s in ((OLD, 40 * DAY_S), (YOUNG, 2 * DAY_S)):
        path = Cache(folder).path(digest)
        path.write_bytes(bytes(3 << 20))
        os.utime(path, (time.time() - unused_s,) * 2)
    Known(folder).remember(parse("ctl:5000/app:1"), YOUNG)
    pod = tmp_path / ".isthmus/pods/1"
    pod.mkdir(parents=True)
    (pod / "pod.json").write_text(json.dumps({"spec": {"containers": [{"image": "ctl:5000/app:1"}]}}))
    return folder


def left(cache):
    return {path.name[:9] for path in cache.glob("*.squashfs")}


def test_list(capsys):
    assert main(["images", "list"]) == 0
    first, second = capsys.readouterr().out.splitlines()[1:]
    assert first.split()[:2] == ["ctl:5000/app:1", "130000000000"]
    assert first.rstrip().endswith("in use")
    assert second.split()[:2] == ["-", "120000000000"]


def test_list_for_scripts(capsys):
    assert main(["images", "list", "--json"]) == 0
    reported = json.loads(capsys.readouterr().out)
    assert [(each["digest"], each["runs"]) for each in reported["images"]] == [(YOUNG, True), (OLD, False)]
    assert reported["size_bytes"] == sum(each["size_bytes"] for each in reported["images"])


def test_prune_says_and_removes(cache, capsys):
    assert main(["images", "prune", "--dry-run"]) == 0
    assert capsys.readouterr().out.startswith(f"{OLD}\n1 image, ")
    assert left(cache) == {"sha256-12", "sha256-13"}
    assert main(["images", "prune", "--unused-days", "0", "--json"]) == 0
    assert [each["digest"] for each in json.loads(capsys.readouterr().out)["images"]] == [OLD]
    assert left(cache) == {"sha256-13"}


@pytest.fixture
def layer(cache):
    """An old layer."""
    path = Store(cache).path(f"sha256:{'a' * 64}")
    path.write_bytes(bytes(1 << 20))
    os.utime(path, (time.time() - 40 * DAY_S,) * 2)
    return path


def test_layers_are_reported_in_one_line(layer, capsys):
    assert main(["images", "list"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "and, for later pulls, 1 layer, 1 MiB"
    assert main(["images", "list", "--json"]) == 0
    reported = json.loads(capsys.readouterr().out)
    assert (reported["layers"], reported["size_bytes"]) == ({"count": 1, "size_bytes": 1 << 20}, 7 << 20)
    assert len(reported["images"]) == 2


def test_layers_are_pruned_with_images(layer, capsys):
    assert main(["images", "prune"]) == 0
    assert capsys.readouterr().out == f"{OLD}\n1 image and 1 layer, 4 MiB, removed\n"
    assert not layer.exists()


def test_prune_to_a_size(cache):
    assert main(["images", "prune", "--max-gib", "1"]) == 0
    assert left(cache) == {"sha256-12", "sha256-13"}
    assert main(["images", "prune", "--max-gib", "0"]) == 0
    assert left(cache) == {"sha256-13"}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["ctl:5000/app:1"], "your pods use ctl:5000/app:1; delete them first, or use --force"),
        (["1200", "1300"], "your pods use"),
        (["ctl:5000/none"], "ctl:5000/none is not there; see `isthmus images list`"),
        (["abcd"], "abcd is not there"),
        (["No Image"], "'No Image' is no image"),
    ],
)
def test_wrong_removal_removes_nothing(words, message, cache, capsys):
    assert main(["images", "remove", *words]) == 1
    assert message in capsys.readouterr().err
    assert left(cache) == {"sha256-12", "sha256-13"}


def test_remove_by_digits_and_by_name(cache):
    assert main(["images", "remove", OLD[:14]]) == 0
    assert main(["images", "remove", "--force", "ctl:5000/app:1"]) == 0
    assert left(cache) == set()


def test_digits_of_several_are_refused(cache, capsys):
    Cache(cache).path(f"sha256:1200{'1' * 60}").write_bytes(b"x")
    assert main(["images", "remove", "1200"]) == 1
    assert "could be sha256:1200" in capsys.readouterr().err


@pytest.mark.parametrize("word", ["-1", "many", "nan"])
def test_wrong_number_is_wrong_usage(word):
    with pytest.raises(SystemExit) as stopped:
        main(["images", "prune", "--max-gib", word])
    assert stopped.value.code == 2
