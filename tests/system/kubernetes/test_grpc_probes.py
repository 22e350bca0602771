"""gRPC probes against a server that nobody here wrote: etcd, in a pod."""

import pytest

from tests.support.wait import wait

READY_S = 180


@pytest.fixture(scope="module")
def served(space, settings):
    """The pod, once its etcd was brought into its claim's folder and answers."""
    volume = wait(lambda: space.get("pvc/programs")["spec"].get("volumeName"))
    folder = space.get(f"pv/{volume}")["spec"]["hostPath"]["path"]
    bring = f"cd {folder} && unsquashfs -quiet -no-progress -dest image {settings['image']} usr/local/bin/etcd"
    space.cluster.login.run_as(space.cluster.user, f"{bring} && mv image/usr/local/bin/etcd . && rm -r image")
    wait(lambda: space.container("etcd", "etcd"), lambda reported: reported.get("ready"), timeout_s=READY_S)
    return space


def test_server_that_is_well_is_started_and_stays(served):
    reported = served.container("etcd", "etcd")
    assert (reported["started"], reported["ready"], reported["restartCount"]) == (True, True, 0)


def test_service_that_the_server_does_not_know_is_not_ready(served):
    reported = served.container("etcd", "unknown")
    assert "running" in reported["state"]
    assert (reported["ready"], reported["restartCount"]) == (False, 0)


def test_server_that_hangs_is_begun_again(served):
    served.kubectl("exec etcd --container etcd -- sh -c 'kill -STOP $(pidof etcd)'")
    reported = wait(
        lambda: served.container("etcd", "etcd"),
        lambda reported: reported.get("restartCount") == 1 and reported["ready"],
        timeout_s=READY_S,
    )
    assert reported["lastState"]["terminated"]["exitCode"] == 137
