"""What the kubelet removes by itself: what it pulled, and no more."""

import os
import time

from isthmus.images.cache import Cache
from isthmus.images.known import Known
from isthmus.images.store.keeping import Store
from isthmus.kubelet.images.collecting import Collecting
from isthmus.kubelet.main import Kubelet
from isthmus.kubelet.settings import Settings
from isthmus.model.images import parse
from tests.support.pods.objects import SETTINGS

DAY_S = 86400


def image(cache, digit, unused_days, name=None):
    path = Cache(cache).path(f"sha256:{digit * 64}")
    path.write_bytes(b"12345")
    os.utime(path, (time.time() - unused_days * DAY_S,) * 2)
    if name:
        Known(cache).remember(parse(name), f"sha256:{digit * 64}")
    return path


def test_layers_go_whoever_pulled_them(tmp_path):
    cache = tmp_path / "isthmus/images"
    (tmp_path / "isthmus").mkdir()
    store = Store(Cache(cache).folder)
    path = store.path(f"sha256:{'1' * 64}")
    path.write_bytes(b"1234567")
    collecting = Collecting(cache, tmp_path / "isthmus/pods")
    assert collecting.collect() == 0
    # Where there is no room, even one that was used just now.
    assert collecting.collect(all_unused=True) == 7
    assert not path.exists()


def test_only_what_the_kubelet_pulled_goes(tmp_path):
    cache = tmp_path / "isthmus/images"
    (tmp_path / "isthmus").mkdir()
    own, users = image(cache, "1", 31, "ctl:5000/app:1"), image(cache, "2", 31)
    young, today = image(cache, "3", 29, "ctl:5000/app:2"), image(cache, "4", 0, "ctl:5000/app:3")
    collecting = Collecting(cache, tmp_path / "isthmus/pods")
    assert collecting.collect() == 5
    assert [path.exists() for path in (own, users, young, today)] == [False, True, True, True]
    assert Collecting(cache, tmp_path / "isthmus/pods", unused_days=0).collect() == 0
    assert collecting.collect(all_unused=True) == 5
    assert [path.exists() for path in (users, young, today)] == [True, False, True]


def test_limits_are_the_sites(tmp_path):
    site = {"pods": SETTINGS, "image_days": 3, "image_gib": 7}
    settings = Settings(tmp_path / "cluster", "127.0.0.1", 0, 0, tmp_path, "1.36.3", tmp_path, **site)
    assert Kubelet(settings, None, None)._collecting == Collecting(tmp_path / "images", tmp_path / "pods", 3, 7)
