"""kubectl to a container that does not run: it shows why, and not what it tries next."""

import contextlib
import signal
import socket

import pytest

from isthmus.kubelet.api import server
from tests.support.fakes.supervisor import OPEN_PORT
from tests.support.servers.kubelet_server import forwarded
from tests.support.wait import wait


@contextlib.contextmanager
def pulling(served):
    """Have the kubelet know that the pod waits for its image, without a supervisor."""
    _, supervisor, run, pods = served
    before = pods.pod
    state = {"waiting": {"reason": "ImagePullBackOff", "message": "nothing answers at registry:5000"}}
    pods.pod = {**before, "status": {"phase": "Pending", "containerStatuses": [{"name": "main", "state": state}]}}
    run(supervisor.leave())
    wait(lambda: not pods.channel.connection(before["metadata"]["uid"]), interval_s=0.02)
    try:
        yield
    finally:
        pods.pod = before
        run(supervisor.connect())
        wait(lambda: pods.channel.connection(before["metadata"]["uid"]), interval_s=0.02)


@pytest.mark.parametrize("words", [("exec", "web", "--", "true"), ("attach", "web")], ids=lambda words: words[0])
def test_container_that_does_not_run_is_reported(api_server, served, words):
    """After an upgrade that is refused kubectl would try SPDY, and show how that failed."""
    with pulling(served):
        done = api_server.kubectl(*words)
    assert done.returncode != 0
    why = "is waiting to start: ImagePullBackOff: nothing answers at registry:5000"
    assert f'container "main" in pod "web" {why}' in done.stderr
    assert "405" not in done.stderr


def test_forward_to_a_pod_that_does_not_run_is_reported(api_server, served):
    with pulling(served), forwarded(api_server, OPEN_PORT) as (local, process):
        client = socket.create_connection(("127.0.0.1", local), timeout=60)
        with client, contextlib.suppress(ConnectionResetError):
            assert client.recv(10) == b""
        process.send_signal(signal.SIGINT)
        assert "is waiting to start: ImagePullBackOff: nothing answers" in process.stdout.read()


def test_old_kubectl_is_reported(api_server, served):
    posted = api_server.session().post(f"{served[0]}/exec/default/web/main?command=true")
    assert (posted.status_code, "kubectl 1.31" in posted.text) == (400, True)


@pytest.mark.parametrize(
    ("status", "reported"),
    [
        ({"phase": "Succeeded"}, "has ended: the pod's phase is Succeeded"),
        ({"phase": "Pending"}, "is waiting to start: ContainerCreating"),
        ({"phase": "Pending", "reason": "FailedSubmit"}, "is waiting to start: FailedSubmit"),
        ({"phase": "Running"}, "cannot be reached: its job on the node does not answer; try again"),
    ],
)
def test_reason_why_nothing_answers(status, reported):
    pod = {"metadata": {"name": "web"}, "status": status}
    assert server.not_running(pod, "main").startswith(f'container "main" in pod "web" {reported}')
