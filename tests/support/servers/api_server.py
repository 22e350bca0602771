"""A real kube-apiserver on its own etcd, both on the loopback; ready some five seconds after the start."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import requests
import yaml

from isthmus.controlplane import programs
from isthmus.model import skew
from tests.repo.tree import ROOT
from tests.support.files import certificates
from tests.support.servers.etcd import free_port, program
from tests.support.wait import wait

NODE = "slurm"
# "before" or "after": the same tests with that release of artifacts.yml.
RELEASE = os.environ.get("ISTHMUS_TEST_KUBERNETES", "")
# Its published address; it would not publish a loopback address.
ADVERTISED = "192.0.2.1"
# What the kubelet does beyond a node's own rights: the rest of a scheduler, volumes, settings of namespaces.
RULES = [
    {"apiGroups": [""], "resources": ["pods"], "verbs": ["list", "watch"]},
    {"apiGroups": [""], "resources": ["pods/binding"], "verbs": ["create"]},
    {"apiGroups": [""], "resources": ["namespaces"], "verbs": ["get"]},
    {"apiGroups": [""], "resources": ["services"], "verbs": ["get", "list", "watch"]},
    {"apiGroups": ["discovery.k8s.io"], "resources": ["endpointslices"], "verbs": ["list", "watch"]},
    {"apiGroups": [""], "resources": ["persistentvolumes"], "verbs": ["get", "list", "watch", "create", "delete"]},
    {"apiGroups": [""], "resources": ["persistentvolumeclaims"], "verbs": ["get", "list", "watch", "patch"]},
    {"apiGroups": ["storage.k8s.io"], "resources": ["storageclasses"], "verbs": ["get"]},
    {"apiGroups": ["scheduling.k8s.io", "scheduling.x-k8s.io"], "resources": ["podgroups"], "verbs": ["get"]},
]


@dataclass
class ApiServer:
    """Both programs; their data lives and dies with the folder."""

    folder: Path
    release: str = RELEASE
    port: int = field(default_factory=free_port)
    etcd_port: int = field(default_factory=free_port)
    peer_port: int = field(default_factory=free_port)
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)

    @property
    def url(self) -> str:
        """Where it answers."""
        return f"https://127.0.0.1:{self.port}"

    @property
    def version(self) -> str:
        """Of Kubernetes."""
        releases = yaml.safe_load((ROOT / "artifacts.yml").read_text())["releases"]
        return str(releases[self._named("kubernetes")]["version"])

    @property
    def groups(self) -> str:
        """The version that it has PodGroups in."""
        return programs.GROUPS[skew.release(self.version)]

    @property
    def pki(self) -> Path:
        """The folder of keys and certificates."""
        return self.folder / "pki"

    def start(self) -> None:
        """Start both and wait until the API server is ready."""
        self._start("etcd", "etcd", self._etcd_flags())
        self._start("kube-apiserver", self._named("kube-apiserver"), self._apiserver_flags())
        wait(self._is_ready, timeout_s=180, interval_s=0.1)
        self.grant()

    def grant(self) -> None:
        """Give the kubelet its rights."""
        group = "rbac.authorization.k8s.io"
        name, session = {"name": "isthmus:kubelet"}, self.session()
        role = {"apiVersion": f"{group}/v1", "kind": "ClusterRole", "metadata": name, "rules": RULES}
        reference = {"apiGroup": group, "kind": "ClusterRole", **name}
        subject = {"apiGroup": group, "kind": "User", "name": f"system:node:{NODE}"}
        binding = {"apiVersion": f"{group}/v1", "kind": "ClusterRoleBinding", "metadata": name}
        for kind, body in (
            ("clusterroles", role),
            ("clusterrolebindings", {**binding, "roleRef": reference, "subjects": [subject]}),
        ):
            session.post(f"{self.url}/apis/{group}/v1/{kind}", json=body).raise_for_status()

    def stop(self) -> None:
        """Stop both."""
        for process in reversed(self.processes):
            process.kill()
            process.wait(60)

    def session(self, name: str = "admin") -> requests.Session:
        """Return an HTTP session as one of those the CA has signed."""
        session = requests.Session()
        session.verify = str(self.pki / "ca.crt")
        session.cert = (str(self.pki / f"{name}.crt"), str(self.pki / f"{name}.key"))
        session.trust_env = False
        return session

    def kubeconfig(self, name: str) -> Path:
        """Write a kubeconfig for one of those the CA has signed."""
        path = self.folder / f"{name}.kubeconfig"
        user = {"client-certificate": str(self.pki / f"{name}.crt"), "client-key": str(self.pki / f"{name}.key")}
        cluster = {"server": self.url, "certificate-authority": str(self.pki / "ca.crt")}
        content = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "test", "cluster": cluster}],
            "users": [{"name": name, "user": user}],
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": name}}],
            "current-context": "test",
        }
        path.write_text(json.dumps(content))
        path.chmod(0o600)
        return path

    def kubectl(self, *words: str, **options: Any) -> subprocess.CompletedProcess[str]:
        """Run kubectl as the administrator."""
        command = [program("kubectl"), f"--kubeconfig={self.kubeconfig('admin')}", *words]
        return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120, **options)

    def _is_ready(self) -> bool:
        ended = [process.args for process in self.processes if process.poll() is not None]
        assert not ended, (ended, (self.folder / "kube-apiserver.log").read_text()[-2000:])
        try:
            return self.session().get(f"{self.url}/readyz", timeout=10).ok
        except requests.RequestException:
            return False

    def _named(self, name: str) -> str:
        return f"{name}-{self.release}" if self.release else name

    def _start(self, name: str, artifact: str, flags: dict[str, object]) -> None:
        words = [f"--{key}={value}" for key, value in flags.items()]
        with (self.folder / f"{name}.log").open("ab") as log:
            self.processes.append(
                subprocess.Popen([program(artifact), *words], stdout=log, stderr=log, cwd=self.folder)
            )

    def _etcd_flags(self) -> dict[str, object]:
        client, peer = (f"http://127.0.0.1:{port}" for port in (self.etcd_port, self.peer_port))
        return {
            "data-dir": self.folder / "etcd",
            "listen-client-urls": client,
            "advertise-client-urls": client,
            "listen-peer-urls": peer,
            "initial-advertise-peer-urls": peer,
            "initial-cluster": f"default={peer}",
            "unsafe-no-fsync": "true",
        }

    def _apiserver_flags(self) -> dict[str, object]:
        files = self.pki
        return {
            "etcd-servers": f"http://127.0.0.1:{self.etcd_port}",
            "bind-address": "127.0.0.1",
            "advertise-address": ADVERTISED,
            "secure-port": self.port,
            "tls-cert-file": files / "apiserver.crt",
            "tls-private-key-file": files / "apiserver.key",
            "client-ca-file": files / "ca.crt",
            "kubelet-certificate-authority": files / "ca.crt",
            "kubelet-client-certificate": files / "apiserver-kubelet-client.crt",
            "kubelet-client-key": files / "apiserver-kubelet-client.key",
            "service-account-issuer": "https://kubernetes.default.svc",
            "service-account-key-file": files / "sa.pub",
            "service-account-signing-key-file": files / "sa.key",
            "service-cluster-ip-range": "10.96.0.0/16",
            "authorization-mode": "Node,RBAC",
            "anonymous-auth": "false",
            "allow-privileged": "true",
            "feature-gates": "GenericWorkload=true",
            "runtime-config": f"scheduling.k8s.io/{self.groups}=true",
            # Its controller, which makes each namespace's account, does not run here.
            "disable-admission-plugins": "ServiceAccount",
        }


@contextmanager
def api_server(folder: Path) -> Iterator[ApiServer]:
    """Start a server with keys of its own; stopped at the end."""
    certificates.write_cluster(folder / "pki")
    server = ApiServer(folder)
    try:
        server.start()
        yield server
    finally:
        server.stop()
