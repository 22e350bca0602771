"""Arguments and configuration files of the four programs; pure.

Memory: the API server's live heap grows with the objects, the others' hardly do. GOMEMLIMIT makes each collect
harder near its share instead of dying at the job's limit.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from ipaddress import IPv4Address
from pathlib import Path

from isthmus.controlplane.layout import Layout
from isthmus.controlplane.pki.authorities import SIGNER
from isthmus.controlplane.settings import Settings
from isthmus.controlplane.versions.plan import UNRECORDED
from isthmus.model import skew

# Parts of the job's memory, percent; what is left is the kubelet's and Python's.
MEMORY_SHARES = {"etcd": 13, "kube-apiserver": 42, "kube-controller-manager": 16, "coredns": 5}
LOOPBACK = "127.0.0.1"
ETCD_NAME = "default"
# Groups of pods that start together: a young API, which each release has in another version; those the kubelet knows.
GROUPS = {"1.36": "v1alpha2", "1.37": "v1beta1"}
ANY = "0.0.0.0"  # noqa: S104 -- only where the job has a network of its own


@dataclass(frozen=True, slots=True)
class Ports:
    """Where the programs listen, TCP; the defaults are those of a network namespace of one's own."""

    api: int = 6443
    etcd: int = 2379
    etcd_peer: int = 2380
    controller_manager: int = 10257
    kubelet: int = 10250
    channel: int = 10260
    dns: int = 53
    dns_ready: int = 8181


PORT_NAMES = tuple(each.name for each in fields(Ports))


@dataclass(frozen=True, slots=True)
class Site:
    """One start of a control plane.

    Attributes:
        settings: the admin's.
        seen: the files as the programs see them.
        address: the job's.
        ports: of this start.
        upstreams: DNS servers for all other names.
        audit: whether requests are logged.
        data: etcd's, as etcd sees them, where they are not among the files.
        figures: whether the kubelet reports counts to the site.
        kubernetes: the version that this start has.
    """

    settings: Settings
    seen: Layout
    address: IPv4Address
    ports: Ports = Ports()
    upstreams: tuple[str, ...] = ()
    audit: bool = False
    data: Path | None = None
    figures: bool = False
    kubernetes: str = UNRECORDED.kubernetes

    @property
    def etcd(self) -> str:
        """The URL of etcd, in the job."""
        return f"https://{LOOPBACK}:{self.ports.etcd}"

    @property
    def server(self) -> str:
        """The API server's URL from elsewhere."""
        return f"https://{self.address}:{self.ports.api}"

    @property
    def local_server(self) -> str:
        """The same from the job itself."""
        return f"https://{LOOPBACK}:{self.ports.api}"


def memory_limit(program: str, memory_mib: int) -> str:
    """Return GOMEMLIMIT for a program in a job of so much memory."""
    return f"{memory_mib * MEMORY_SHARES[program] // 100}MiB"


def etcd(site: Site) -> list[str]:
    """Return etcd's arguments.

    A lone member elects itself, but only when its election timeout has passed, once or twice; and as it counts its own
    voice, a sync that takes longer costs it nothing. Each heartbeat wakes it.

    Watchers get progress notifications. The API server, which has a watch for each kind of objects, requests
    them where it needs them; one every 5 s, the usual period, is a third of an idle cluster's CPU time.
    """
    client, peer = (f"https://{LOOPBACK}:{port}" for port in (site.ports.etcd, site.ports.etcd_peer))
    pair = [("cert-file", site.seen.certificate("etcd")), ("key-file", site.seen.key("etcd"))]
    trust = [("client-cert-auth", "true"), ("trusted-ca-file", site.seen.certificate("etcd-ca"))]
    return _flags(
        [
            ("name", ETCD_NAME),
            ("data-dir", site.data or site.seen.etcd),
            ("listen-client-urls", client),
            ("advertise-client-urls", client),
            ("listen-peer-urls", peer),
            ("initial-advertise-peer-urls", peer),
            ("initial-cluster", f"{ETCD_NAME}={peer}"),
            *(item for prefix in ("", "peer-") for item in ((prefix + key, value) for key, value in [*pair, *trust])),
            ("heartbeat-interval", "100"),
            ("election-timeout", "500"),
            ("watch-progress-notify-interval", "10m"),
            ("log-level", "warn"),
        ]
    )


def restore(snapshot: Path, folder: Path) -> list[str]:
    """Return etcdutl's arguments that make data of a snapshot.

    Clients have seen revisions that the snapshot does not know. So revisions go on far above, and older ones count as
    compacted: every watch and every cache of Kubernetes reads all again (etcd documentation, Disaster recovery,
    "Restoring with revision bump").
    """
    # One member: nobody looks for it there.
    peer = f"https://{LOOPBACK}:{Ports().etcd_peer}"
    return [
        *("snapshot", "restore", str(snapshot)),
        *_flags(
            [
                ("data-dir", folder),
                ("name", ETCD_NAME),
                ("initial-cluster", f"{ETCD_NAME}={peer}"),
                ("initial-advertise-peer-urls", peer),
                ("bump-revision", "1000000000"),
            ]
        ),
        "--mark-compacted",
    ]


def apiserver(site: Site) -> list[str]:
    """Return the API server's arguments."""
    seen = site.seen
    return _flags(
        [
            ("advertise-address", site.address),
            ("secure-port", site.ports.api),
            # In a network of one's own all addresses are one's own.
            ("bind-address", ANY if site.settings.has_network else site.address),
            ("service-cluster-ip-range", site.settings.services),
            ("tls-cert-file", seen.certificate("apiserver")),
            ("tls-private-key-file", seen.key("apiserver")),
            ("client-ca-file", seen.certificate("ca")),
            ("etcd-servers", site.etcd),
            ("etcd-cafile", seen.certificate("etcd-ca")),
            ("etcd-certfile", seen.certificate("apiserver-etcd-client")),
            ("etcd-keyfile", seen.key("apiserver-etcd-client")),
            ("kubelet-certificate-authority", seen.certificate("ca")),
            ("kubelet-client-certificate", seen.certificate("apiserver-kubelet-client")),
            ("kubelet-client-key", seen.key("apiserver-kubelet-client")),
            ("kubelet-preferred-address-types", "InternalIP"),
            ("requestheader-client-ca-file", seen.certificate("front-proxy-ca")),
            ("requestheader-allowed-names", "front-proxy-client"),
            ("requestheader-username-headers", "X-Remote-User"),
            ("requestheader-group-headers", "X-Remote-Group"),
            ("requestheader-extra-headers-prefix", "X-Remote-Extra-"),
            ("proxy-client-cert-file", seen.certificate("front-proxy-client")),
            ("proxy-client-key-file", seen.key("front-proxy-client")),
            ("service-account-issuer", f"https://kubernetes.default.svc.{site.settings.domain}"),
            ("service-account-key-file", seen.pki / "sa.pub"),
            ("service-account-signing-key-file", seen.key("sa")),
            ("encryption-provider-config", seen.encryption),
            ("authorization-mode", "Node,RBAC"),
            ("anonymous-auth", "false"),
            # Webhooks and aggregated APIs in pods: with headless Services there is no other way to them.
            ("enable-aggregator-routing", "true"),
            *_groups(site.kubernetes),
            *_groups_served(site.kubernetes),
            # Root in the pod's own user namespace, which every user may have anyway; see docs/users/pod-security.md.
            ("allow-privileged", "true"),
            ("event-ttl", "1h"),
            ("profiling", "false"),
            *(_audit(seen) if site.audit else ()),
        ]
    )


def controller_manager(site: Site) -> list[str]:
    """Return the controller manager's arguments; nobody competes with it, so it elects no leader."""
    seen = site.seen
    config = seen.kubeconfig("controller-manager")
    return _flags(
        [
            ("kubeconfig", config),
            ("authentication-kubeconfig", config),
            ("authorization-kubeconfig", config),
            ("bind-address", LOOPBACK),
            ("secure-port", site.ports.controller_manager),
            ("tls-cert-file", seen.certificate("controller-manager")),
            ("tls-private-key-file", seen.key("controller-manager")),
            ("leader-elect", "false"),
            ("use-service-account-credentials", "true"),
            ("service-account-private-key-file", seen.key("sa")),
            ("root-ca-file", seen.certificate("ca")),
            ("client-ca-file", seen.certificate("ca")),
            ("cluster-signing-cert-file", seen.certificate(SIGNER)),
            ("cluster-signing-key-file", seen.key("ca")),
            ("service-cluster-ip-range", site.settings.services),
            ("node-monitor-grace-period", "60s"),
            # By the default, 20 a second, its controllers wait seconds for their own tokens in a new cluster.
            ("kube-api-qps", "100"),
            ("kube-api-burst", "200"),
            ("profiling", "false"),
            # It lets go of groups that are deleted, which the API server holds until no pod needs them.
            *_groups(site.kubernetes),
        ]
    )


def coredns(site: Site) -> list[str]:
    """Return CoreDNS's arguments."""
    return ["-conf", str(site.seen.corefile)]


def corefile(site: Site) -> str:
    """Return CoreDNS's configuration: the cluster's names itself, all others from the network layer's servers.

    That a name of the cluster is not there is found out each time: who waits for a pod asks before it is.
    """
    zones = f"{site.settings.domain} in-addr.arpa ip6.arpa"
    # In order: what only the first server knows, the others deny.
    servers = " ".join(site.upstreams)
    forward = f"    forward . {servers} {{\n        policy sequential\n    }}\n" if servers else ""
    return (
        f".:{site.ports.dns} {{\n"
        f"    bind {' '.join(dict.fromkeys((LOOPBACK, str(site.address))))}\n"
        "    errors\n"
        f"    ready {LOOPBACK}:{site.ports.dns_ready}\n"
        f"    kubernetes {zones} {{\n"
        f"        kubeconfig {site.seen.kubeconfig('coredns')}\n"
        "        pods verified\n"
        "        ttl 5\n"
        "        fallthrough in-addr.arpa ip6.arpa\n"
        "    }\n"
        f"{forward}"
        f"    cache 5 {{\n        disable denial {site.settings.domain}\n    }}\n"
        "    loadbalance\n"
        "}\n"
    )


def encryption(key: str) -> str:
    """Return the API server's encryption configuration.

    Args:
        key: 32 random bytes, base64.
    """
    return (
        "apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\nresources:\n"
        "- resources: [secrets]\n  providers:\n"
        f"  - secretbox: {{keys: [{{name: first, secret: {key}}}]}}\n  - identity: {{}}\n"
    )


AUDIT_POLICY = (
    "apiVersion: audit.k8s.io/v1\nkind: Policy\nomitStages: [RequestReceived]\nrules:\n"
    "- {level: None, users: ['system:apiserver', 'system:kube-controller-manager']}\n"
    "- {level: None, verbs: [get, list, watch]}\n"
    "- {level: Metadata}\n"
)


def _groups(kubernetes: str) -> Sequence[tuple[str, object]]:
    return (("feature-gates", "GenericWorkload=true"),) if skew.release(kubernetes) in GROUPS else ()


def _groups_served(kubernetes: str) -> Sequence[tuple[str, object]]:
    version = GROUPS.get(skew.release(kubernetes))
    return (("runtime-config", f"scheduling.k8s.io/{version}=true"),) if version else ()


def _audit(seen: Layout) -> Sequence[tuple[str, object]]:
    return (
        ("audit-policy-file", seen.audit_policy),
        ("audit-log-path", seen.logs / "audit.log"),
        ("audit-log-maxsize", 10),
        ("audit-log-maxbackup", 3),
    )


def _flags(pairs: Iterable[tuple[str, object]]) -> list[str]:
    return [f"--{name}={value}" for name, value in pairs]
