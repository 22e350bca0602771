"""A container's files belong to whom the image says, with its modes, in real Apptainer."""

import json
import platform
import subprocess
from pathlib import Path

import pytest

from isthmus.images import archive, base, layers
from isthmus.images.squashfs import writing
from isthmus.model import images
from tests.support.attacks import set_id
from tests.support.files.layers import entry, write
from tests.support.pods.plans import container, plan

IMAGE = images.parse("registry:5000/app")
APP = {"uid": 1000, "gid": 50}
USER = {**APP, "groups": []}
# Runs where Apptainer is, as a user; the rest of a pull is this side's.
BARE = """
import json, sys
from pathlib import Path
from isthmus.images import base
base.make(json.loads(sys.argv[1]), "amd64", Path(sys.argv[2]), lambda: False)
"""


@pytest.fixture(scope="module")
def image(built):
    """One whose user owns its home, with set-id bits, and a later layer."""
    return built()


def written(folder, busybox):
    """Write the layers."""
    first = [
        (entry("bin/busybox", mode=0o755, size=len(busybox))[0], busybox),
        *(
            entry(f"bin/{name}", "link", "busybox")
            for name in ("sh", "cat", "stat", "touch", "mkdir", "id", "ls", "chown")
        ),
        entry("etc/passwd", value="root:x:0:0::/root:/bin/sh\napp:x:1000:50::/home/app:/bin/sh\n"),
        entry("home/app", "folder", mode=0o750, **APP),
        entry("home/app/secret", value="mine\n", mode=0o600, **APP),
        entry("root/secret", value="roots\n", mode=0o600),
        entry("srv/shared", "folder", mode=0o2775, gid=60),
        entry("data/last", value="x", uid=65535, gid=65535),
        entry("gone/file"),
        (entry("bin/whose", mode=0o4755, uid=7, size=len(set_id.program()))[0], set_id.program()),
    ]
    return [write(folder / "1.tar", first), write(folder / "2.tar", [entry(".wh.gone"), entry("home/app/new", **APP)])]


@pytest.fixture(scope="module")
def built(host, tmp_path_factory):
    """Makes it as a pull does."""
    busybox = subprocess.run(host.command("cat", "/bin/busybox"), check=True, capture_output=True).stdout
    found = written(tmp_path_factory.mktemp("layers"), busybox)
    made = host.run("mktemp", "-d", f"{host.shared}/bare.XXXXXX", user="alice").strip()
    host.run("python3", "-c", BARE, json.dumps({"Env": ["GREETING=hello"], "Cmd": ["sh"]}), made, user="alice")

    def make(**how):
        tree = layers.merge(IMAGE, map(archive.entries, found), lambda: None, **how).tree
        base.add(tree, Path(made, "root"))
        path = host.shared / f"owners{len(how)}.squashfs"
        with path.open("xb") as out:
            writing.write(tree, {}, out, lambda: None)
        path.chmod(0o644)
        return str(path)

    return make


def said(pod, image, script, **rest):
    """Run a script in a container; return its lines."""
    reported = pod.run(plan(container("main", script, image=image, **rest))).ended()["containers"]["main"]
    lines = (pod.folder / "logs/main/0.log").read_text().splitlines()
    assert reported["exit_code"] == 0, (reported, lines)
    return [line.split(" ", 3)[3] for line in lines]


def test_owners_groups_and_modes_are_the_images(pod, image):
    names = "/home/app /home/app/secret /home/app/new /srv/shared /data/last /tmp /root/secret"
    lines = said(pod, image, f"stat -c '%n %u:%g %a' {names}; ls /gone || :")
    assert lines[:7] == [
        "/home/app 1000:50 750",
        "/home/app/secret 1000:50 600",
        "/home/app/new 1000:50 644",
        "/srv/shared 0:60 2775",
        "/data/last 65535:65535 644",
        "/tmp 0:0 1777",
        "/root/secret 0:0 600",
    ]
    assert "No such file" in lines[7]


def test_user_of_the_image_owns_its_home_and_nothing_else(pod, image):
    script = (
        "cat ~/secret && touch ~/written && mkdir ~/folder && stat -c %u:%g ~/written;"
        "cat /root/secret; touch /srv/shared/x; touch /etc/x; touch /tmp/x && stat -c %u /tmp/x"
    )
    env = [{"name": "HOME", "value": "/home/app"}]
    lines = said(pod, image, script, user=USER, env=env)
    assert lines[:2] == ["mine", "1000:50"]
    assert sum("Permission denied" in line for line in lines) == 3
    assert lines[-1] == "1000"


def test_files_can_be_given_away(pod, image):
    assert said(pod, image, "chown 33:33 /home/app/secret && stat -c %u:%g /home/app/secret") == ["33:33"]


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the program is x86-64")
@pytest.mark.parametrize(("escalates", "status"), [(True, 7), (False, 232)], ids=["allowed", "no-new-privileges"])
def test_set_id_program_counts_where_the_pod_allows_it(pod, image, escalates, status):
    # 1000 is 232 in the eight bits of an exit status.
    script = "/bin/whose; echo $?"
    assert said(pod, image, script, user=USER, escalates=escalates) == [str(status)]


def test_root_that_cannot_be_written_has_the_owners_too(pod, image):
    assert said(
        pod,
        image,
        "stat -c %u /home/app && cat ~/secret",
        user=USER,
        read_only=True,
        env=[{"name": "HOME", "value": "/home/app"}],
    ) == ["1000", "mine"]


def test_user_without_further_ids_has_images_of_roots_alone(supervised, built):
    lines = said(supervised("bob"), built(root_alone=True), "stat -c %u:%g:%a /home/app; cat /home/app/secret")
    assert lines == ["0:0:750", "mine"]


@pytest.mark.parametrize(("add", "there"), [(["ALL"], True), ([], False)], ids=["privileged", "usual"])
def test_privileged_container_may_mount_by_fuse(pod, add, there):
    script = "[ -c /dev/fuse ] && exec 3<>/dev/fuse && echo open || :"
    assert said(pod, "", script, capabilities={"add": add, "drop": []}) == ["open"] * there
