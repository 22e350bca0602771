"""Images on one base: what a user's pull kept of it is neither downloaded nor compressed again."""

import json

import pytest

from tests.support.attacks import hostile_images
from tests.support.clusters.cluster import ROOT

MAKER = (ROOT / "tests/support/attacks/hostile_images.py").read_text().partition('if __name__ == "__main__":')[0]
BASE = [hostile_images.file("etc/base", "the base"), hostile_images.file("etc/gone", "not for long")]
IMAGES = {
    "first": [BASE, [hostile_images.file("etc/own", "first")]],
    "second": [BASE, [hostile_images.file("etc/own", "second"), hostile_images.file("etc/.wh.gone", "")]],
}
LAYOUTS = f"""{MAKER}
for name, layers in {IMAGES!r}.items():
    make(Path(name), layers, "/none")
blobs = [{{path.name for path in Path(name, "blobs/sha256").iterdir()}} for name in {list(IMAGES)!r}]
print(*blobs[0] & blobs[1])
"""


@pytest.fixture
def home(login, user, work):
    """A home whose cache is empty, and the two images in it."""
    path = login.run_as(user, f"mktemp -d {work}/home.XXXXXX")
    login.run_as(user, f"cd {path} && mkdir -pm 700 .isthmus tmp")
    return path


@pytest.fixture
def base(login, user, home):
    """The digits of the digest of the layer that both images have."""
    return login.run_as(user, f"cd {home} && python3 - <<'END'\n{LAYOUTS}\nEND").strip()


def pull(login, user, home, name):
    words = f"HOME={home} APPTAINER_TMPDIR={home}/tmp isthmus pull --json oci:{home}/{name}"
    return json.loads(login.run_as(user, f"cd {home} && {words}"))


def kept(login, user, home):
    return login.run_as(user, f"cd {home}/.isthmus/images/.layers && ls *.layer").split()


def content(login, user, pulled, name):
    # Of some releases it fails for a file that is not there.
    return login.run_as(user, f"unsquashfs -cat {pulled['path']} {name} 2>/dev/null || :")


def test_second_image_brings_its_own_layer_alone(login, user, home, base):
    first = pull(login, user, home, "first")
    # What nobody has, nobody can send.
    login.run_as(user, f"rm {home}/second/blobs/sha256/{base}")
    second = pull(login, user, home, "second")
    assert (first["cached"], second["cached"]) == (False, False)
    assert [content(login, user, one, "etc/own") for one in (first, second)] == ["first", "second"]
    assert [content(login, user, one, "etc/base") for one in (first, second)] == ["the base"] * 2
    assert content(login, user, first, "etc/gone") == "not for long"
    assert content(login, user, second, "etc/gone") == ""
    assert len(kept(login, user, home)) == 3


def test_damaged_layer_is_downloaded_again(login, user, home, base):
    pull(login, user, home, "first")
    login.run_as(user, f"truncate --size=-1 {home}/.isthmus/images/.layers/sha256-{base}.1.layer")
    assert content(login, user, pull(login, user, home, "second"), "etc/base") == "the base"
    assert len(kept(login, user, home)) == 3


def test_layers_are_listed_and_pruned(login, user, home, base):
    pull(login, user, home, "first")
    images = f"cd {home} && HOME={home} isthmus images"
    assert json.loads(login.run_as(user, f"{images} list --json"))["layers"]["count"] == 2
    pruned = json.loads(login.run_as(user, f"{images} prune --unused-days 0 --json"))
    assert (pruned["images"], pruned["layers"]["count"]) == ([], 2)
    assert json.loads(login.run_as(user, f"{images} list --json"))["layers"]["count"] == 0
