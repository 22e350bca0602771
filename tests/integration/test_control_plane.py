"""A control plane of the real programs: order, deaths, renewal, and what outlives a stop."""

import json
import os
import re
import signal
import ssl
from ipaddress import IPv4Address

import pytest
import requests

from isthmus.clients.kube.apiserver import Access, ApiServer
from isthmus.clients.kube.errors import KubeError
from isthmus.controlplane import programs
from isthmus.controlplane.layout import Layout
from isthmus.controlplane.pki import issuing as pki
from isthmus.controlplane.versions import record
from isthmus.controlplane.versions.plan import UNRECORDED
from isthmus.model import skew
from tests.support.servers import control_planes
from tests.support.wait import wait

NAMES = pki.Names("alice", "slurm", "cluster.local", IPv4Address("10.96.0.1"), (), (IPv4Address("127.0.0.1"),))
SECRET = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "reported"}, "stringData": {"word": "xyzzy-plugh"}}

GROUP = {
    "apiVersion": f"scheduling.k8s.io/{programs.GROUPS[skew.release(UNRECORDED.kubernetes)]}",
    "kind": "PodGroup",
    "metadata": {"name": "own"},
    "spec": {"schedulingPolicy": {"gang": {"minCount": 2}}},
}


@pytest.fixture(scope="module")
def control(tmp_path_factory):
    with control_planes.running(tmp_path_factory.mktemp("control")) as made:
        yield made


def readings(api, path):
    try:
        return api.text(path)
    except KubeError as error:
        return str(error)


def are_ready(reported):
    return {reported[name]["state"] for name in control_planes.NAMES} == {"ready"}


def test_everything_is_ready_but_the_kubelet_that_is_not_there(control):
    reported = control.conditions()
    assert {reported[name]["state"] for name in control_planes.NAMES} == {"ready"}
    assert reported["kubelet"]["state"] in {"backoff", "starting"}
    assert "No module named" in reported["kubelet"]["said"]


def test_dns_never_lacks_its_rights(control):
    log = (control.layout.logs / "coredns.log").read_text()
    assert not re.search("forbidden|Unauthorized", log)


def test_state_names_job_and_server(control):
    reported = json.loads(control.layout.state.read_text())
    assert (reported["schema"], reported["job"], reported["server"]) == (
        1,
        "1",
        f"https://127.0.0.1:{control.ports.api}",
    )


def test_nobody_enters_without_a_certificate(control):
    url = f"https://127.0.0.1:{control.ports.api}"
    ca = str(control.layout.certificate("ca"))
    assert {requests.get(url + path, verify=ca, timeout=60).status_code for path in ("/api", "/readyz")} == {401}
    with pytest.raises(requests.exceptions.ConnectionError, match="certificate"):
        etcd_ca = str(control.layout.certificate("etcd-ca"))
        requests.get(f"https://127.0.0.1:{control.ports.etcd}/health", verify=etcd_ca, timeout=60)


def test_only_the_owner_reads_any_file(control):
    folder = control.layout.folder
    open_to_others = [path for path in folder.rglob("*") if path.stat().st_mode & 0o077]
    assert open_to_others == []


def test_secret_is_encrypted_in_etcd(control):
    control.api.apply(SECRET | {"metadata": {"name": "reported", "namespace": "default"}})
    files = [path.read_bytes() for path in control.layout.etcd.rglob("*") if path.is_file()]
    assert any(b"/registry/secrets/default/reported" in content for content in files)
    assert not any(b"xyzzy-plugh" in content for content in files)


def test_group_of_pods_that_is_deleted_is_gone(control):
    control.kubectl("apply", "-f", "-", text=json.dumps(GROUP))
    control.kubectl("delete", "podgroups.scheduling.k8s.io", "own", "--timeout=30s")


@pytest.mark.parametrize("name", control_planes.NAMES)
def test_killed_program_begins_again_alone(control, name):
    before = control.conditions()
    os.kill(before[name]["pid"], signal.SIGKILL)
    wait(lambda: control.conditions()[name]["restarts"], lambda count: count == before[name]["restarts"] + 1)
    after = wait(control.conditions, are_ready, timeout_s=180)
    # Those that lose their server may end themselves, and begin again too.
    others = {"etcd", "coredns"} - {name}
    assert {each: after[each]["pid"] for each in others} == {each: before[each]["pid"] for each in others}
    assert after[name]["ended"] == "ended by signal 9"
    wait(lambda: readings(control.api, "/readyz"), lambda said: said == "ok")


def test_home_that_takes_no_status_ends_nothing(control):
    """What is in its way stands for every reason why a file cannot be written."""
    before = control.conditions()
    hindrance = control.layout.programs.with_name(f"{control.layout.programs.name}.new")
    hindrance.mkdir()
    try:
        os.kill(before["coredns"]["pid"], signal.SIGKILL)
        # It is restarted, and the others serve on, though nobody can read that.
        wait(lambda: (control.home / "run.log").read_text(), lambda text: "coredns ended by signal 9" in text)
        assert readings(control.api, "/readyz") == "ok"
        assert control.conditions() == before
    finally:
        hindrance.rmdir()
    after = wait(control.conditions, lambda now: now != before and are_ready(now), timeout_s=180)
    assert {name: after[name]["pid"] for name in ("etcd", "kube-apiserver")} == {
        name: before[name]["pid"] for name in ("etcd", "kube-apiserver")
    }


def test_renewed_certificate_is_served_without_a_restart(control):
    context = ("127.0.0.1", control.ports.api)
    before = ssl.get_server_certificate(context)
    pid = control.conditions()["kube-apiserver"]["pid"]
    control.layout.certificate("apiserver").unlink()
    assert pki.ensure(control.layout, NAMES) == ["apiserver"]
    wait(lambda: ssl.get_server_certificate(context), lambda now: now != before)
    assert control.conditions()["kube-apiserver"]["pid"] == pid
    control.kubectl("get", "namespaces")


def test_stop_and_start_resumes_and_second_owner_is_refused(control):
    control.kubectl("create", "configmap", "kept")
    second = control_planes.ControlPlane(control.home, control.programs)
    second.start("2")
    assert second.process.wait(120) != 0
    control.kubectl("get", "configmap", "kept")
    assert control.stop() == 0
    assert not control.layout.state.exists()
    ended = [each["state"] for each in control.conditions().values()]
    assert ended == ["ended"] * 5
    control.start("3")
    control.wait_until_ready()
    assert control.kubectl("get", "configmap", "kept", "-o", "name") == "configmap/kept"


def test_acknowledged_write_outlives_the_death_of_all(control):
    control.kubectl("create", "configmap", "written")
    control.process.kill()
    control.process.wait()
    control.start("4")
    control.wait_until_ready()
    assert control.kubectl("get", "configmap", "written", "-o", "name") == "configmap/written"


def test_version_that_ends_at_once_gives_way_to_data_and_programs_of_before(control):
    control.kubectl("create", "configmap", "before-the-move")
    assert control.stop() == 0
    control.deaths = 1
    control.add("1.37.0-3.6.14", kube_apiserver='#!/bin/sh\necho "this version cannot start" >&2\nexit 3\n')
    db = control.layout.etcd / "member/snap/db"
    before = db.stat().st_ino
    control.start("5")
    control.wait_until_ready()
    assert control.api.get("/version")["gitVersion"] == "v1.36.3"
    assert control.kubectl("get", "configmap", "before-the-move", "-o", "name") == "configmap/before-the-move"
    # They are the copy: what the other version's etcd wrote to is gone, and so is all else of the move.
    assert db.stat().st_ino != before
    assert not [path for path in control.layout.folder.iterdir() if "etcd-" in path.name]
    known = record.read(control.layout)
    assert (known.versions, known.move, known.failure.kubernetes) == (UNRECORDED, None, "1.37.0")
    assert known.failure.why == "kube-apiserver ended with status 3: this version cannot start"
    assert "1.37.0 could not be started" in (control.home / "run.log").read_text()


def test_stranger_with_a_foreign_certificate_is_reported(control, tmp_path):
    foreign = Layout(tmp_path)
    pki.ensure(foreign, NAMES)
    access = Access(
        f"https://127.0.0.1:{control.ports.api}",
        control.layout.certificate("ca"),
        foreign.certificate("admin"),
        foreign.key("admin"),
    )
    assert re.search("Unauthorized|certificate", readings(ApiServer(access), "/readyz"))
