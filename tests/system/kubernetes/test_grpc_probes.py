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
    wait(lambda: space.container("etcd", "etcd"), lambda told: told.get("ready"), timeout_s=READY_S)
    return space


def test_server_that_is_well_is_started_and_stays(served):
    told = served.container("etcd", "etcd")
    assert (told["started"], told["ready"], told["restartCount"]) == (True, True, 0)


def test_service_that_the_server_does_not_know_is_not_ready(served):
    told = served.container("etcd", "unknown")
    assert "running" in told["state"]
    assert (told["ready"], told["restartCount"]) == (False, 0)


def test_server_that_hangs_is_begun_anew(served):
    served.kubectl("exec etcd --container etcd -- sh -c 'kill -STOP $(pidof etcd)'")
    told = wait(
        lambda: served.container("etcd", "etcd"),
        lambda told: told.get("restartCount") == 1 and told["ready"],
        timeout_s=READY_S,
    )
    assert told["lastState"]["terminated"]["exitCode"] == 137
