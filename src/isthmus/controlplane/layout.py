"""Paths of a user's cluster: everything is below one folder, 0700, on the shared home.

Only the data of etcd may be elsewhere (node_disk).

Programs in containers see that folder elsewhere, so a program's arguments are written with a layout of the place
where the program sees it.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from isthmus.model.network import CONTROL_PLANE

# The name of the job, the owner's reservation and the pods' node, the same for every user.
JOB_NAME = "isthmus-control-plane"
RESERVATION = CONTROL_PLANE


@dataclass(frozen=True, slots=True)
class Layout:
    """The files below `folder`."""

    folder: Path

    @property
    def pki(self) -> Path:
        """Keys and certificates."""
        return self.folder / "pki"

    @property
    def etcd(self) -> Path:
        """The data of etcd, where they lie on the home."""
        return self.folder / "etcd"

    @property
    def snapshots(self) -> Path:
        """Copies of data that lie on a node's disk."""
        return self.folder / "snapshots"

    @property
    def claim(self) -> Path:
        """Where the newest data are."""
        return self.folder / "claim.json"

    @property
    def disk_name(self) -> Path:
        """The random part of the folder's name on nodes' disks."""
        return self.folder / "disk-name"

    @property
    def data(self) -> Path:
        """The report on data on a node's disk."""
        return self.folder / "data.json"

    @property
    def purge(self) -> Path:
        """Exists when the control plane must remove everything at its end."""
        return self.folder / "purge"

    @property
    def logs(self) -> Path:
        """A log per program, rotated, and the job's own."""
        return self.folder / "logs"

    @property
    def job_log(self) -> Path:
        """What the job itself says."""
        return self.logs / "job.log"

    @property
    def lock(self) -> Path:
        """Held by the one job that may write, and by its programs."""
        return self.folder / "lock"

    @property
    def owner(self) -> Path:
        """Which job that is."""
        return self.folder / "owner.json"

    @property
    def state(self) -> Path:
        """Where the cluster is; there only while it is ready."""
        return self.folder / "state.json"

    @property
    def programs(self) -> Path:
        """How each program is."""
        return self.folder / "programs.json"

    @property
    def user_options(self) -> Path:
        """What the user asked `isthmus up` for, kept for the next job."""
        return self.folder / "up.json"

    @property
    def versions(self) -> Path:
        """The versions that ran the data last."""
        return self.folder / "versions.json"

    @property
    def encryption(self) -> Path:
        """The key of Secrets in etcd."""
        return self.folder / "encryption.yaml"

    @property
    def audit_policy(self) -> Path:
        """The audit policy."""
        return self.folder / "audit.yaml"

    @property
    def corefile(self) -> Path:
        """CoreDNS's configuration."""
        return self.folder / "Corefile"

    def kubeconfig(self, program: str) -> Path:
        """Return the kubeconfig of a program."""
        return self.folder / f"{program}.kubeconfig"

    def key(self, name: str) -> Path:
        """Return a private key."""
        return self.pki / f"{name}.key"

    def certificate(self, name: str) -> Path:
        """Return a certificate."""
        return self.pki / f"{name}.crt"


@dataclass(frozen=True, slots=True)
class Home:
    """What Isthmus has in a user's home."""

    home: Path

    @property
    def folder(self) -> Path:
        """The whole folder, ~/.isthmus."""
        return self.home / ".isthmus"

    @property
    def cluster(self) -> Layout:
        """The control plane's."""
        return Layout(self.folder / "cluster")

    @property
    def kubeconfig(self) -> Path:
        """The user's way in."""
        return self.folder / "kubeconfig"

    @property
    def usual_kubeconfig(self) -> Path:
        """Where kubectl and others look by themselves; the user's, who may have more clusters."""
        return self.home / ".kube/config"

    @property
    def pods(self) -> Path:
        """A folder per pod, named by its UID."""
        return self.folder / "pods"
