"""kubectl through a real API server to the kubelet's server, to a supervisor that runs nothing."""

import asyncio
import base64
import contextlib
import json
import os
import signal
import socket
import ssl
import threading
import uuid

import aiohttp
import pytest
import requests
from aiohttp import web

from isthmus.kubelet.api import server
from tests.support.fakes.supervisor import OPEN_PORT
from tests.support.servers.kubelet_server import forwarded


def test_logs_are_shown(api_server, served):
    assert api_server.kubectl("logs", "web").stdout == "one\ntwo\nthree\n"
    assert api_server.kubectl("logs", "web", "--tail=1").stdout == "three\n"


def test_logs_of_a_pod_that_leaves_at_that_moment_come_from_its_file(api_server, served):
    _, supervisor, run, _ = served
    kept = supervisor.folder / "logs" / "main" / "0.log"
    kept.parent.mkdir(parents=True)
    kept.write_text("2026-01-01T00:00:00.5Z stdout F kept\n")
    supervisor.leaves_at = "logs"
    try:
        done = api_server.kubectl("logs", "web")
    finally:
        supervisor.leaves_at = ""
        run(supervisor.connect())
    assert (done.stdout, done.stderr) == ("kept\n", "")


@pytest.mark.parametrize(
    ("status", "reported"),
    [
        ({"phase": "Pending"}, "is waiting to start: ContainerCreating"),
        ({"phase": "Failed"}, "is not available"),
        ({"containerStatuses": [{"name": "main", "state": {"waiting": {"reason": "X"}}}]}, "is waiting to start: X"),
    ],
)
def test_log_that_cannot_be_there_yet_is_reported(status, reported):
    with pytest.raises(web.HTTPBadRequest) as refused:
        server.must_have_run({"metadata": {"name": "web"}, "status": status}, "main")
    assert refused.value.text == f'container "main" in pod "web" {reported}'


def test_exec_reports_streams_and_status(api_server, served):
    done = api_server.kubectl("exec", "web", "--", "echo", "a b", "c")
    assert (done.stdout, done.returncode) == ("echo a b c\n", 7)
    assert "to stderr" in done.stderr


def test_exec_passes_input(api_server, served):
    done = api_server.kubectl("exec", "-i", "web", "--", "cat", input="some\ninput" * 20_000)
    assert done.stdout == "cat\n" + "some\ninput" * 20_000


async def received(api_server, protocol):
    """What a client of this protocol gets of an exec: channel -> bytes."""
    context = ssl.create_default_context(cafile=api_server.pki / "ca.crt")
    context.load_cert_chain(api_server.pki / "admin.crt", api_server.pki / "admin.key")
    path = "/api/v1/namespaces/default/pods/web/exec?command=echo&command=x&stdout=1&stderr=1"
    found = {}
    async with (
        aiohttp.ClientSession() as session,
        session.ws_connect(f"{api_server.url}{path}", protocols=[protocol], ssl=context) as connection,
    ):
        async for message in connection:
            text = message.type is aiohttp.WSMsgType.TEXT
            channel, body = int(message.data[:1]) if text else message.data[0], message.data[1:]
            found[channel] = found.get(channel, b"") + (base64.b64decode(body) if text else body)
    return found


@pytest.mark.parametrize("protocol", ["channel.k8s.io", "base64.channel.k8s.io", "v4.base64.channel.k8s.io"])
def test_exec_speaks_older_protocols(api_server, served, protocol):
    found = asyncio.run(received(api_server, protocol))
    assert found[1] == b"echo x\n"
    assert b"to stderr" in found[2]
    last = json.loads(found[3])["message"] if protocol.startswith("v4") else found[3].decode()
    assert last == "command terminated with non-zero exit code: exit status 7"


def test_unknown_container_is_reported(api_server, served):
    session = api_server.session()
    done = session.get(f"{api_server.url}/api/v1/namespaces/default/pods/web/log?container=none")
    assert (done.status_code, "none" in done.text) == (400, True)


def test_forwarded_port_answers(api_server, served):
    with forwarded(api_server, OPEN_PORT) as (local, _):
        for text in (b"hello", os.urandom(300_000).hex().encode()):
            with socket.create_connection(("127.0.0.1", local), timeout=60) as client:
                threading.Thread(target=client.sendall, args=(text,), daemon=True).start()
                got = b""
                while len(got) < len(text):
                    got += client.recv(1 << 16)
                assert got == text.upper()


def test_closed_port_is_reported(api_server, served):
    with forwarded(api_server, 9) as (local, process):
        with socket.create_connection(("127.0.0.1", local), timeout=60) as client:
            client.sendall(b"x")
            # An end; reported by a reset, where kubectl had not yet read what came.
            with contextlib.suppress(ConnectionResetError):
                assert client.recv(10) == b""
        process.send_signal(signal.SIGINT)
        assert "nothing listens on port 9" in process.stdout.read()


def test_nobody_gets_in(api_server, served):
    url = served[0]
    ca = str(api_server.pki / "ca.crt")
    routes = ("pods", "healthz", "metrics", "stats/summary", "exec/default/web/main", "none")
    unknown = {path: requests.get(f"{url}/{path}", verify=ca, timeout=60).status_code for path in routes}
    assert set(unknown.values()) == {401}, unknown
    named = {path: api_server.session("nobody").get(f"{url}/{path}").status_code for path in routes}
    assert set(named.values()) == {403}, named
    forged = requests.get(f"{url}/pods", verify=ca, timeout=60, headers={"Authorization": "Bearer nothing"})
    assert forged.status_code == 401


def test_figures_are_reported(api_server, served):
    session = api_server.session()
    summary = session.get(f"{served[0]}/stats/summary").json()
    assert summary["pods"][0]["containers"][0]["memory"]["workingSetBytes"] == 1 << 20
    resources = session.get(f"{served[0]}/metrics/resource").text
    assert 'pod_cpu_usage_seconds_total{namespace="default",pod="web"} 5.0' in resources
    assert session.get(f"{served[0]}/pods").json()["items"][0]["metadata"]["name"] == "web"
    assert session.get(f"{served[0]}/healthz").text == "ok"
    own = session.get(f"{served[0]}/metrics")
    assert own.headers["Content-Type"].startswith("text/plain; version=0.0.4")
    assert "isthmus_kubelet_pods{" in own.text
    place = 'container="main",id="",image="x",name="",namespace="default",pod="web"'
    advised = session.get(f"{served[0]}/metrics/cadvisor").text.splitlines()
    assert f"container_memory_working_set_bytes{{{place}}} 1.048576e+06" in advised
    listed = session.get(f"{served[0]}/runningpods/").json()["items"]
    assert [one["spec"]["containers"][0]["name"] for one in listed] == ["main"]


def test_pod_of_another_name_is_not_there(api_server, served):
    path = f"{served[0]}/containerLogs/default/other-{uuid.uuid4().hex}/main"
    assert api_server.session().get(path).status_code == 404
