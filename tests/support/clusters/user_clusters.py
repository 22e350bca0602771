"""A user's Kubernetes on a live site, as the user has it: by commands on the login node."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from testinfra.backend.base import CommandResult

from tests.support.clusters.cluster import Node, succeeded
from tests.support.wait import wait

# Of `isthmus up`, cold; kubectl and squeue take moments.
UP_S = 200
# Of a pod on a busy test bed, until it is ready or has ended.
POD_S = 180


FETCH = """
import ssl, sys, urllib.request
context = ssl.create_default_context()
context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
print(urllib.request.urlopen(sys.argv[1], timeout=5, context=context).read().decode())
"""


def fetch(url: str) -> str:
    """Return a command that prints what an address serves, without verification; hosts may have no curl."""
    return f"python3 -c {shlex.quote(FETCH)} {url}"


@dataclass(frozen=True)
class UserCluster:
    """One user's."""

    login: Node
    user: str

    def isthmus(self, command: str) -> Any:
        """Run a command of isthmus that must succeed; return its object."""
        return json.loads(self.login.run_as(self.user, f"isthmus {command} --json"))

    def up(self, options: str = "") -> dict[str, Any]:
        """Bring it up."""
        return self.isthmus(f"up --timeout {UP_S} {options}")

    def down(self, options: str = "") -> dict[str, Any]:
        """Take it down."""
        return self.isthmus(f"down {options}")

    def status(self) -> dict[str, Any]:
        """Look at it, up or down."""
        reported = self.login.try_as(self.user, "isthmus status --json")
        assert reported.stdout, f"rc {reported.rc}: {reported.stderr}"
        return json.loads(reported.stdout)

    def kubectl(self, command: str, text: str = "") -> str:
        """Run kubectl, which must succeed."""
        return succeeded(self.try_kubectl(command, text))

    def try_kubectl(self, command: str, text: str = "") -> CommandResult:
        """Run kubectl, which may fail; also as `kubectl` within the command."""
        given = f" <<< {shlex.quote(text)}" if text else ""
        return self.login.try_as(self.user, f"export KUBECONFIG=$HOME/.isthmus/kubeconfig; kubectl {command}{given}")

    def job(self) -> dict[str, Any]:
        """Return the control plane's job."""
        found = self.status()["job"]
        assert found, "no control plane runs"
        return found

    def on_its_node(self, nodes: dict[str, Node], command: str) -> str:
        """Run a command as root where the control plane runs."""
        return nodes[self.job()["node"]].output(command)


@dataclass(frozen=True)
class Space:
    """A namespace of a user's cluster.

    Attributes:
        images: short name -> reference; manifests name images by the short ones.
    """

    cluster: UserCluster
    name: str
    images: dict[str, str]

    def kubectl(self, command: str, text: str = "") -> str:
        """Run kubectl, which must succeed."""
        return self.cluster.kubectl(f"--namespace {self.name} {command}", text)

    def try_kubectl(self, command: str, text: str = "") -> CommandResult:
        """Run kubectl, which may fail."""
        return self.cluster.try_kubectl(f"--namespace {self.name} {command}", text)

    def apply(self, manifest: str) -> None:
        """Make what a manifest says, with this site's images in it."""
        known = "|".join(self.images)
        reported = re.sub(rf"image: ({known})\b", lambda found: f"image: {self.images[found[1]]}", manifest)
        self.kubectl("apply -f -", reported)

    def get(self, what: str) -> dict[str, Any]:
        """Return an object, or a list of them."""
        return json.loads(self.kubectl(f"get {what} --output json"))

    def status(self, pod: str) -> dict[str, Any]:
        """Return a pod's status."""
        return self.get(f"pod/{pod}")["status"]

    def container(self, pod: str, name: str, kind: str = "containerStatuses") -> dict[str, Any]:
        """Return the status of a pod's container; empty before there is one."""
        found = (one for one in self.status(pod).get(kind, ()) if one["name"] == name)
        return next(found, {})

    def ended(self, pod: str, timeout_s: float = POD_S) -> dict[str, Any]:
        """Return the status of a pod that has ended, one way or the other."""
        final = ("Succeeded", "Failed")
        return wait(
            lambda: self.status(pod), lambda reported: reported["phase"] in final, timeout_s=timeout_s, interval_s=1
        )

    def ready(self, what: str, timeout_s: int = POD_S) -> None:
        """Wait until pods are ready."""
        self.kubectl(f"wait --for=condition=Ready {what} --timeout={timeout_s}s")

    def events(self, pod: str) -> list[dict[str, Any]]:
        """Return what was reported about a pod."""
        return self.get(f"events --field-selector involvedObject.name={pod}")["items"]


@contextmanager
def fresh(login: Node, user: str) -> Iterator[UserCluster]:
    """Bring a user's cluster up from nothing; purge it at the end."""
    found = UserCluster(login, user)
    found.down("--purge --yes")
    try:
        found.up()
        yield found
    finally:
        found.down("--purge --yes")


def site_images(controller: Node) -> dict[str, str]:
    """Return short names with the images of the site's registry."""
    known = json.loads(controller.output("cat /etc/isthmus/images.json"))["images"]
    return {name: image["reference"] for name, image in known.items()}


@contextmanager
def namespace(cluster: UserCluster, name: str, images: dict[str, str], manifest: str = "") -> Iterator[Space]:
    """Make a namespace, with all that a manifest says; remove it at the end."""
    cluster.kubectl(f"create namespace {name}")
    found = Space(cluster, name, images)
    try:
        wait(lambda: found.try_kubectl("get serviceaccount default").rc == 0)
        if manifest:
            found.apply(manifest)
        yield found
    finally:
        # The cluster goes at the end anyway; a namespace of pods with a grace period takes a quarter of a minute.
        cluster.kubectl(f"delete namespace {name} --wait=false")
