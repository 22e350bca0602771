"""The control plane's image: its key and its programs."""

import pytest

from isthmus.filters.kubernetes import (
    kubernetes_image_key,
    kubernetes_image_programs,
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
