"""Another version of Kubernetes on the data of one before: real programs, with one whose API server ends at once."""

import json

import pytest

from isthmus.controlplane.versions import record
from isthmus.controlplane.versions.plan import UNRECORDED
from tests.support.servers import control_planes
from tests.support.wait import wait

NEXT = "1.37.0-3.6.14"
ENDS = '#!/bin/sh\necho "this version cannot start" >&2\nexit 3\n'


@pytest.fixture
def control(tmp_path):
    """A control plane that has run once, and has an object."""
    with control_planes.running(tmp_path) as made:
        made.kubectl("create", "configmap", "kept")
        assert made.stop() == 0
        yield made


def add(control, name, **scripts):
    """A folder of the same programs under another version, some replaced by a script."""
    folder = control_planes.folder_of_programs(control.home.parent / name)
    for program, text in scripts.items():
        path = folder / program.replace("_", "-")
        path.unlink()
        path.write_text(text)
        path.chmod(0o755)
    control.others += (folder,)


def names(control):
    found = json.loads(control.kubectl("get", "configmaps", "-o", "json"))["items"]
    return {each["metadata"]["name"] for each in found} - {"kube-root-ca.crt"}


def version(control):
    return json.loads(control.layout.state.read_text())["kubernetes"]


def left(control):
    """What a move leaves beside the data."""
    return {path.name for path in control.layout.folder.iterdir() if "etcd-" in path.name}


def test_version_that_ends_at_once_gives_way_to_the_data_and_programs_of_before(control):
    add(control, NEXT, kube_apiserver=ENDS)
    db = control.layout.etcd / "member/snap/db"
    before = db.stat().st_ino
    control.start("2")
    control.wait_until_ready()
    assert (version(control), names(control)) == ("1.36.3", {"kept"})
    # It is the copy: what the other version's etcd wrote to is gone.
    assert db.stat().st_ino != before
    known = record.read(control.layout)
    assert (known.versions, known.move, known.failure.kubernetes) == (UNRECORDED, None, "1.37.0")
    assert known.failure.why == "kube-apiserver ended with status 3: this version cannot start"
    assert left(control) == set()
    control.kubectl("create", "configmap", "later")
    assert control.stop() == 0
    # It is not tried again by itself.
    control.start("3")
    assert control.wait_until_ready() < 60
    assert (version(control), names(control)) == ("1.36.3", {"kept", "later"})
    assert "1.37.0 could not be started" in (control.home / "run.log").read_text()


def test_late_user_goes_through_the_release_between_and_never_back(control):
    add(control, NEXT)
    add(control, "1.38.0-3.6.14")
    control.start("2")
    control.wait_until_ready()
    assert (version(control), names(control), left(control)) == ("1.38.0", {"kept"}, set())
    assert "Kubernetes 1.36.3, then 1.37.0, 1.38.0" in (control.home / "run.log").read_text()
    assert record.read(control.layout).versions.kubernetes == "1.38.0"
    assert control.stop() == 0
    control.wanted = "1.37"
    control.start("3")
    assert control.process.wait(60) != 0
    assert "1.37.0 cannot read them; stay with 1.38" in (control.home / "run.log").read_text()


def test_control_plane_that_is_killed_in_a_trial_goes_on(control):
    # It never becomes ready, and never ends.
    add(control, NEXT, kube_controller_manager="#!/bin/sh\nexec sleep 600\n")
    control.start("2")
    wait(lambda: record.read(control.layout).move, lambda move: move is not None)
    wait(control.conditions, lambda now: now.get("kube-apiserver", {}).get("state") == "ready", timeout_s=120)
    control.kill()
    assert left(control) == {"etcd-before"}
    (control.others[0] / "kube-controller-manager").unlink()
    (control.others[0] / "kube-controller-manager").symlink_to(
        (control.programs / "kube-controller-manager").readlink()
    )
    control.start("3")
    control.wait_until_ready()
    assert (version(control), names(control), left(control)) == ("1.37.0", {"kept"}, set())
