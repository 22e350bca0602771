"""Keys and certificates of one test: of servers on the loopback, the channel, a user's cluster, nodes that join.

All are made by the project's own module, which its unit tests judge by another library's rules.
"""

from __future__ import annotations

from datetime import timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography.x509 import DNSName, IPAddress

from isthmus.support import certificates
from isthmus.support.certificates import Issuer, Subject, Usage

BOTH = (Usage.SERVER, Usage.CLIENT)
LOOPBACK = "127.0.0.1"
_LIFETIME = timedelta(days=1)
_AUTHORITYS_LIFETIME = timedelta(days=100)
# Of a user's cluster; name of the file: common name, organization.
OF_CLUSTER = {
    "apiserver": ("kube-apiserver", ""),
    "admin": ("admin", "system:masters"),
    "nobody": ("nobody", ""),
    "kubelet": ("system:node:slurm", "system:nodes"),
    "apiserver-kubelet-client": ("kube-apiserver-kubelet-client", "system:masters"),
}


def authority(name: str, key: bytes = b"", lifetime: timedelta = _AUTHORITYS_LIFETIME) -> Issuer:
    """Make an authority, with a key (PEM) that is there already or a new one."""
    own = certificates.read_key(key) if key else certificates.new_key()
    return Issuer(certificates.authority(Subject(certificates.name(name)), own, lifetime), own)


def pair(issuer: Issuer, subject: Subject) -> tuple[str, str]:
    """Make a key and have its certificate signed; both PEM, the key first."""
    key = certificates.new_key()
    signed = certificates.leaf(subject, key.public_key(), issuer, _LIFETIME)
    return certificates.key_pem(key), certificates.pem([signed])


def server(
    name: str = "", host: str = "localhost", address: str = LOOPBACK, usages: tuple[Usage, ...] = BOTH
) -> Subject:
    """Return what the certificate of a server says."""
    return Subject(certificates.name(name), usages, [DNSName(host), IPAddress(ip_address(address))])


def write(folder: Path, address: str = LOOPBACK) -> None:
    """Write ca.crt, etcd.{crt,key}, client.{crt,key} and token.{key,pub}; servers are at an address.

    The client has no name: etcd's gateway refuses one that has.
    """
    folder.mkdir()
    ca = authority("test CA")
    (folder / "ca.crt").write_text(certificates.pem([ca.certificate]))
    _write(folder / "etcd", pair(ca, server("etcd", address=address)))
    _write(folder / "client", pair(ca, server(usages=(Usage.CLIENT,))))
    _write_pair_of_keys(folder / "token")


def write_channel(folder: Path, uid: str) -> None:
    """Write the channel's: ca.crt, kubelet.{crt,key} for its server, tls.{crt,key} of a pod."""
    folder.mkdir()
    ca = authority("pods CA")
    (folder / "ca.crt").write_text(certificates.pem([ca.certificate]))
    _write(folder / "kubelet", pair(ca, server("isthmus-kubelet", "isthmus-kubelet", usages=(Usage.SERVER,))))
    _write(folder / "tls", pair(ca, server(uid, uid, usages=(Usage.CLIENT,))))


def write_cluster(folder: Path) -> Path:
    """Write a user's cluster's as the kubelet finds them: ca, pods-ca, sa, and who ca signs; return the folder."""
    folder.mkdir(mode=0o700, parents=True)
    names = [DNSName("localhost"), DNSName("kubernetes"), IPAddress(ip_address(LOOPBACK))]
    ca, pods_ca = authority("ca"), authority("pods-ca")
    for file, made in (("ca", ca), ("pods-ca", pods_ca)):
        _write(folder / file, (certificates.key_pem(made.key), certificates.pem([made.certificate])))
    for file, (name, organization) in OF_CLUSTER.items():
        groups = [organization] if organization else []
        _write(folder / file, pair(ca, Subject(certificates.name(name, groups), BOTH, names)))
    _write_pair_of_keys(folder / "sa")
    return folder


def succeeded(old: Path, folder: Path) -> Path:
    """Write a cluster's again, where the channel's old authority is trusted beside the new one; return the folder."""
    write_cluster(folder)
    both = (folder / "pods-ca.crt").read_bytes() + (old / "pods-ca.crt").read_bytes()
    (folder / "pods-ca.crt").write_bytes(both)
    return folder


def _write(path: Path, made: tuple[str, str]) -> None:
    key, certificate = made
    _write_key(path.with_name(f"{path.name}.key"), key)
    path.with_name(f"{path.name}.crt").write_text(certificate)


def _write_pair_of_keys(path: Path) -> None:
    key = certificates.new_key()
    _write_key(path.with_name(f"{path.name}.key"), certificates.key_pem(key))
    path.with_name(f"{path.name}.pub").write_text(certificates.public_pem(key.public_key()))


def _write_key(path: Path, text: str) -> None:
    path.touch(mode=0o600)
    path.write_text(text)
