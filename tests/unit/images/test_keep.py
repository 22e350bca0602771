"""What of the cache may go: never what a pod uses, nor what was used just now."""

import json
import os

import pytest

from isthmus.images import keep
from isthmus.images.cache import Cache
from isthmus.images.known import Known
from isthmus.model.images import parse

NOW_S = 1_800_000_000
HOUR_S, DAY_S = 3600, 86400
UID = "11111111-2222-3333-4444-555555555555"


def digest(number):
    return f"sha256:{number:064x}"


@pytest.fixture
def place(tmp_path):
    """The cache and the pods of a user."""
    return tmp_path / "user/images", tmp_path / "user/pods"


def image(place, number, unused_s=0, name=None, size=10):
    place[0].parent.mkdir(exist_ok=True)
    cache = Cache(place[0])
    path = cache.path(digest(number))
    path.write_bytes(b"x" * size)
    os.utime(path, (NOW_S - unused_s,) * 2)
    if name:
        Known(place[0]).remember(parse(name), digest(number))
    return path


def gone(place, **limits):
    return [int(one.digest[7:], 16) for one in keep.surplus(keep.listed(*place), NOW_S, **limits)]


def test_no_cache_is_an_empty_one(place):
    assert keep.listed(*place) == []


def test_list_has_names_and_the_last_used_first(place):
    image(place, 1, DAY_S, "debian:13")
    image(place, 2, HOUR_S)
    (place[0] / ".sha256-x.part").touch()
    assert [(one.digest, one.names, one.size_bytes) for one in keep.listed(*place)] == [
        (digest(2), (), 10),
        (digest(1), ("docker://docker.io/library/debian:13",), 10),
    ]


def test_age_and_size(place):
    for number, unused_s in ((1, 2 * HOUR_S), (2, 5 * DAY_S), (3, 40 * DAY_S), (4, 20 * DAY_S)):
        image(place, number, unused_s)
    assert gone(place) == []
    assert gone(place, unused_s=30 * DAY_S) == [3]
    assert gone(place, size_bytes=20) == [3, 4]
    assert gone(place, unused_s=10 * DAY_S, size_bytes=10) == [3, 4, 2]


def test_what_was_used_just_now_stays(place):
    image(place, 1, HOUR_S - 1)
    assert gone(place, unused_s=0, size_bytes=0) == []


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("report.json", {"containers": {"main": {"image_id": f"ctl:5000/app@{digest(1)}"}}}),
        ("pod.json", {"spec": {"containers": [{"name": "main", "image": "ctl:5000/app:1"}]}}),
        ("pod.json", {"spec": {"initContainers": [{"name": "main", "image": f"ctl:5000/other@{digest(1)}"}]}}),
        ("pod.json", {"spec": {"containers": [], "volumes": [{"image": {"reference": "ctl:5000/app:1"}}, {}]}}),
    ],
)
def test_what_a_pod_uses_stays(place, file, content):
    image(place, 1, 99 * DAY_S, "ctl:5000/app:1")
    folder = place[1] / UID
    folder.mkdir(parents=True)
    (folder / file).write_text(json.dumps(content))
    assert gone(place, unused_s=0, size_bytes=0) == []
    (folder / file).write_text("no JSON")
    assert gone(place, unused_s=0) == [1]


def test_files_of_an_earlier_release_go(place):
    path = image(place, 1, 2 * HOUR_S)
    old = path.rename(path.with_name(path.name.replace(".2.squashfs", ".squashfs")))
    (one,) = keep.listed(*place)
    assert (one.path, one.is_old) == (old, True)
    assert gone(place) == [1]


def test_nothing_of_a_removed_image_is_remembered(place):
    path = image(place, 1, 2 * HOUR_S, "debian:13")
    known = Known(place[0])
    assert known.digest(parse("debian:13")) == digest(1)
    assert keep.remove(place[0], keep.listed(*place)) == 10
    assert not path.exists()
    assert known.digest(parse("debian:13")) is None
    assert known.names() == {}


def layer(place, name, unused_s=0, size=10):
    folder = place[0] / ".layers"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_bytes(b"x" * size)
    os.utime(path, (NOW_S - unused_s,) * 2)
    return path


def layer_name(number, kind=1):
    return f"sha256-{number:064x}.{kind}.layer"


def test_layers_go_with_images_by_age_and_size_whenever_they_were_used(place):
    image(place, 1, 2 * HOUR_S)
    image(place, 2, 5 * DAY_S)
    layer(place, layer_name(3), 1)
    layer(place, layer_name(4), 3 * DAY_S)
    kept = [*keep.listed(*place), *keep.layers(place[0])]

    def gone(**limits):
        return [int(one.digest[7:], 16) for one in keep.surplus(kept, NOW_S, **limits)]

    assert gone() == []
    assert gone(unused_s=4 * DAY_S) == [2]
    assert gone(size_bytes=20) == [2, 4]
    assert gone(unused_s=0) == [2, 4, 1, 3]
    assert keep.remove(place[0], [one for one in kept if one.is_layer]) == 20
    assert keep.layers(place[0]) == []
    assert len(keep.listed(*place)) == 2


def test_what_killed_pulls_and_earlier_releases_left_of_layers_goes(place):
    place[0].parent.mkdir()
    old, whole = layer(place, layer_name(1, kind=0)), layer(place, layer_name(2))
    half = layer(place, f".{layer_name(3)}.part")
    other = layer(place, f".{layer_name(4)}.0123456789abcdef.part")
    layer(place, ".sha256-x.lock")
    os.utime(half, (1, 1))
    os.utime(other, None)
    found = keep.layers(place[0])
    assert {one.path for one in found} == {old, whole, half}
    assert {one.path for one in found if one.is_old} == {old, half}


def test_use_is_noted(place):
    path = image(place, 1)
    os.utime(path, (1, 1))
    Cache(place[0]).use(digest(1))
    assert path.stat().st_mtime > 1
    Cache(place[0]).use(digest(2))
