"""The kubelet's own server beside a real API server, with one pod whose supervisor runs nothing."""

import asyncio
import contextlib
import json
import signal
import subprocess
import threading

from isthmus.clients.kube.api import Kube
from isthmus.kubelet.api import server
from isthmus.kubelet.api.access import Access
from isthmus.kubelet.channel import ChannelServer
from isthmus.kubelet.credentials import Authority, server_context
from isthmus.kubelet.pods.store import Store
from tests.support.fakes.supervisor import FakeSupervisor
from tests.support.servers.api_server import NODE
from tests.support.servers.etcd import program
from tests.support.wait import wait

POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "web"},
    "spec": {"nodeName": NODE, "automountServiceAccountToken": False, "containers": [{"name": "main", "image": "x"}]},
}


class OnePod:
    """The pods of a node that has one."""

    def __init__(self, pod, channel, store):
        self.pod, self.channel, self.store = pod, channel, store

    def named(self, namespace, name):
        return self.pod if name == self.pod["metadata"]["name"] else None

    def all(self):
        return [self.pod]

    def connection(self, uid):
        return self.channel.connection(uid)

    def folder(self, uid):
        return self.store.folder(uid)

    async def connected(self, connection):
        pass

    def reported(self, connection, report):
        pass

    def left(self, connection):
        pass


@contextlib.contextmanager
def loop_thread():
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    yield lambda work: asyncio.run_coroutine_threadsafe(work, loop).result(60)
    loop.call_soon_threadsafe(loop.stop)
    thread.join(60)


def register(api_server, port):
    session = api_server.session()
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": NODE}}
    assert session.post(f"{api_server.url}/api/v1/nodes", json=node).status_code in (201, 409)
    status = {
        "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
        "daemonEndpoints": {"kubeletEndpoint": {"Port": port}},
        "declaredFeatures": ["ExtendWebSocketsToKubelet"],
    }
    path = f"{api_server.url}/api/v1/nodes/{NODE}/status"
    kind = {"Content-Type": "application/merge-patch+json"}
    session.patch(path, data=json.dumps({"status": status}), headers=kind).raise_for_status()
    made = session.post(f"{api_server.url}/api/v1/namespaces/default/pods", json=POD)
    assert made.ok, made.text
    running = {"phase": "Running", "containerStatuses": [running_status()]}
    path = f"{api_server.url}/api/v1/namespaces/default/pods/web/status"
    patched = session.patch(path, data=json.dumps({"status": running}), headers=kind)
    assert patched.ok, patched.text
    return patched.json()


def running_status():
    state = {"running": {"startedAt": "2026-01-01T00:00:00Z"}}
    return {"name": "main", "image": "x", "imageID": "", "ready": True, "restartCount": 0, "state": state}


@contextlib.contextmanager
def serving(api_server, folder):
    """Serve a running pod and its fake supervisor."""
    with loop_thread() as run:
        kube = run(connect(api_server.kubeconfig("kubelet")))
        pods = OnePod(POD, None, Store(folder / "pods"))
        pods.channel = ChannelServer(pods)
        authority = Authority(api_server.pki)
        tls = server_context(authority, "127.0.0.1", api_server.pki)
        channel_port = run(pods.channel.start("127.0.0.1", 0, tls))
        routes = server.Server(pods, Access(kube, NODE))
        port = run(routes.start("127.0.0.1", 0, server.context(api_server.pki)))
        pods.pod = register(api_server, port)
        kept = pods.store.folder(pods.pod["metadata"]["uid"])
        kept.accept(pods.pod)
        kept.renew_credential(authority)
        kept.set_address("127.0.0.1", channel_port)
        supervisor = FakeSupervisor(kept.path, "1")
        run(supervisor.connect())
        wait(lambda: pods.channel.connection(kept.uid), interval_s=0.02)
        yield f"https://127.0.0.1:{port}", supervisor, run, pods
        assert not supervisor.unknown
        run(supervisor.leave())
        run(stop(pods.channel, routes))
        remove = f"{api_server.url}/api/v1/namespaces/default/pods/web?gracePeriodSeconds=0"
        assert api_server.session().delete(remove).ok
        run(kube.close())


async def stop(channel, routes):
    """Stop both on the loop that they are of."""
    channel.stop()
    await routes.stop()


async def connect(kubeconfig):
    return await Kube.connect(kubeconfig)


@contextlib.contextmanager
def forwarded(api_server, port):
    words = [program("kubectl"), f"--kubeconfig={api_server.kubeconfig('admin')}", "port-forward", "web", f":{port}"]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    line = process.stdout.readline()
    try:
        assert "Forwarding from" in line, line + process.stdout.read()
        yield int(line.split(" -> ")[0].rpartition(":")[2]), process
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(60)
        process.stdout.close()
