"""A user's Kubernetes on a live site, as the user has it: by commands on the login node."""

from __future__ import annotations

import json
import shlex
from dataclasses import dataclass
from typing import Any

from tests.support.cluster import Node

# Of `isthmus up`, cold; kubectl and squeue take moments.
UP_S = 100


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
        return json.loads(self.login.try_as(self.user, "isthmus status --json").stdout)

    def kubectl(self, command: str, text: str = "") -> str:
        """Run kubectl, which must succeed."""
        given = f" <<< {shlex.quote(text)}" if text else ""
        return self.login.run_as(self.user, f"kubectl --kubeconfig .isthmus/kubeconfig {command}{given}")

    def job(self) -> dict[str, Any]:
        """Return the control plane's job."""
        found = self.status()["job"]
        assert found, "no control plane runs"
        return found

    def on_its_node(self, nodes: dict[str, Node], command: str) -> str:
        """Run a command as root where the control plane runs."""
        return nodes[self.job()["node"]].output(command)
