"""The control plane's images: keys, programs, and which earlier ones stay."""

import os
import re

import pytest

from isthmus.filters.errors import InputError
from isthmus.filters.kubernetes import (
    kubernetes_earlier,
    kubernetes_image_copies,
    kubernetes_image_key,
    kubernetes_image_name,
    kubernetes_image_programs,
    kubernetes_image_rows,
    kubernetes_programs,
    kubernetes_versions,
)

OBTAINED = {name: {"path": f"/cache/{name}", "version": "1.2", "sha256": name * 8} for name in ("etcd", "coredns")}
NAMES = ["etcd", "coredns"]


@pytest.fixture
def recipe(tmp_path):
    path = tmp_path / "build.sh"
    path.write_text("pack\n")
    return str(path)


def test_key_does_not_depend_on_order(recipe):
    assert kubernetes_image_key(OBTAINED, NAMES, recipe) == kubernetes_image_key(OBTAINED, NAMES[::-1], recipe)


def test_key_follows_programs_and_recipe(recipe, tmp_path):
    other = tmp_path / "other.sh"
    other.write_text("pack harder\n")
    changed = OBTAINED | {"etcd": OBTAINED["etcd"] | {"sha256": "0" * 32}}
    keys = [
        kubernetes_image_key(OBTAINED, NAMES, recipe),
        kubernetes_image_key(changed, NAMES, recipe),
        kubernetes_image_key(OBTAINED, NAMES, str(other)),
        kubernetes_image_key(OBTAINED, NAMES[:1], recipe),
    ]
    assert len(set(keys)) == len(keys)


def test_programs_are_words_for_the_recipe():
    assert kubernetes_image_programs(OBTAINED, NAMES) == ["coredns=/cache/coredns", "etcd=/cache/etcd"]


def test_versions_are_reported_by_name():
    assert kubernetes_versions(OBTAINED, NAMES) == {"coredns": "1.2", "etcd": "1.2"}


def test_users_find_programs_by_their_names():
    assert kubernetes_programs(OBTAINED, ["etcd"]) == [
        {"src": "/cache/etcd", "dest": "/usr/local/bin/etcd", "mode": "0755"}
    ]


PRESENT = {"kubernetes": "1.37.2", "etcd": "3.6.14"}
MADE = [("1.37.2", "3.6.14"), ("1.36.3", "3.6.14"), ("1.36.1", "3.6.14"), ("1.36.1", "3.5.30"), ("1.38.0", "3.7.3")]


@pytest.fixture
def cache(tmp_path):
    """Images of five trees, in the order in which they were made, and what else lies there."""
    folder = tmp_path / "control-plane"
    folder.mkdir()
    for number, (kubernetes, etcd) in enumerate(MADE):
        name = kubernetes_image_name({"kubernetes": kubernetes, "etcd": etcd}, f"{number:016x}")
        (folder / name).touch()
        (folder / f"{name}.lock").touch()
    (folder / "control-plane-f1e984ec7f29fd2f.squashfs").touch()
    return folder


def versions(rows):
    return [(row["kubernetes"], row["etcd"]) for row in rows]


def test_newest_earlier_images_stay(cache, tmp_path):
    folders = [str(tmp_path / "nothing"), str(cache)]
    assert versions(kubernetes_earlier(PRESENT, folders, [], 1)) == [("1.36.3", "3.6.14")]
    assert kubernetes_earlier(PRESENT, folders, [], 0) == []
    assert versions(kubernetes_earlier(PRESENT, folders, [], 9)) == MADE[1:4]


def test_wanted_versions_stay_with_each_etcd_they_had(cache):
    assert versions(kubernetes_earlier(PRESENT, [str(cache)], ["1.36.1", "1.37.2"], 1)) == MADE[2:4]


def test_last_one_made_of_equal_versions_stays(cache):
    name = kubernetes_image_name({"kubernetes": "1.36.3", "etcd": "3.6.14"}, "0" * 16)
    (cache / name).touch()
    os.utime(cache / name, (1, 1))
    (row,) = kubernetes_earlier(PRESENT, [str(cache)], ["1.36.3"], 1)
    assert row["src"] == str(cache / kubernetes_image_name(row, f"{1:016x}"))


@pytest.mark.parametrize(
    ("version", "words"),
    [
        ("1.36", "has '1.36'; write whole versions, such as 1.36.3"),
        ("newest", "has 'newest'; write whole versions"),
        ("1.38.0", "has 1.38.0, and this tree's Kubernetes is 1.37.2; name earlier ones alone"),
        ("1.35.4", "have no image of it; copy control-plane-1.35.4-*.squashfs there from the deployer that had it, or"),
    ],
)
def test_version_that_cannot_stay_is_refused(cache, version, words):
    with pytest.raises(InputError, match=re.escape(words)):
        kubernetes_earlier(PRESENT, [str(cache)], [version], 1)


def test_hosts_have_images_by_their_versions(cache):
    images = [{**PRESENT, "src": str(cache / "none")}, *kubernetes_earlier(PRESENT, [str(cache)], [], 1)]
    places = [f"/opt/share/control-plane-{each}-3.6.14.squashfs" for each in ("1.37.2", "1.36.3")]
    assert [row["file"] for row in kubernetes_image_rows(images, "/opt/share")] == places
    # The first was not made.
    assert [copy["dest"] for copy in kubernetes_image_copies(images, "/opt/share")] == places[1:]
