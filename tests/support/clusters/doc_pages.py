"""Types the blocks that pages promise to work, in the page's order, as its reader.

A page is typed in a folder of its own, where the files lie to which the page links, as a reader would have fetched
them. Names that a site decides (the registry, users) stand in pages as those of the local test bed and are replaced.
What a page leaves behind goes at its end.
"""

from __future__ import annotations

import base64
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from tests.support.clusters.cluster import ROOT, Cluster, Node
from tests.support.doc_blocks import READER, Block, fits, runnable
from tests.support.wait import wait

# Layer -> the pages that its tests/system/<layer>/test_docs.py types; a page is typed once.
TYPED = {
    "apptainer": (
        "docs/admins/apptainer-unpack.md",
        "docs/admins/apptainer.md",
        "docs/users/pushing.md",
        # Its last: it removes images.
        "docs/users/images.md",
    ),
    "base": ("docs/admins/base.md",),
    "bench": ("docs/users/migrating.md",),
    "kubernetes": (
        "README.md",
        "docs/users/first-pod.md",
        "docs/users/volumes.md",
        "docs/users/when-it-fails.md",
    ),
    "monitoring": ("docs/admins/monitoring.md",),
    "network": ("docs/users/login.md", "docs/users/networks.md", "docs/users/steps.md"),
    "slurm": ("docs/admins/slurm.md",),
    "workloads": ("docs/users/workloads.md", "docs/users/mpi.md"),
}
_LINK = re.compile(r"\]\((?!https?:)([^)#]+)\)")
_BUSY_S = 120


@dataclass(frozen=True)
class Reader:
    """Who types pages.

    Attributes:
        names: as pages have them -> as this site has them.
        start: what each block of a user begins with.
        end: what the user types after a page.
    """

    cluster: Cluster
    user: str
    names: dict[str, str]
    start: str = ""
    end: str = ""

    def read(self, name: str) -> None:
        """Type a page; each block must end well and print what the page says."""
        page = ROOT / name
        text = page.read_text()
        folder = self._login.run_as(self.user, "mktemp -d ~/isthmus-docs.XXXX").strip()
        try:
            for path in linked(page, text):
                self._put(path, folder)
            for block in runnable(text):
                self._type(block, folder)
        finally:
            self._login.try_as(self.user, f"{self.start} {self.end}")
            self._login.run_as(self.user, f"rm -rf {folder}")

    def with_kubernetes(self, *kinds: str) -> Reader:
        """Return a reader who has a Kubernetes; what a page leaves there of the usual kinds, or these, goes."""
        known = ("deployments", "services", "pods", "persistentvolumeclaims", *kinds)
        # The next page may make objects of the same names; the API server's own Service stays.
        which = "--field-selector=metadata.name!=kubernetes --grace-period=1 --timeout=60s"
        end = f"kubectl delete {','.join(known)} {which}"
        return replace(self, start="export KUBECONFIG=$(isthmus kubeconfig --path);", end=end)

    @property
    def _login(self) -> Node:
        return self.cluster.submit

    def _type(self, block: Block, folder: str) -> None:
        def typed() -> tuple[int, str]:
            return self._typed(block, folder)

        def as_promised(seen: tuple[int, str]) -> bool:
            return seen[0] == 0 and fits(self._known(block.printed), seen[1])

        wait(typed, as_promised, timeout_s=_BUSY_S if block.until else 0, interval_s=1)

    def _typed(self, block: Block, folder: str) -> tuple[int, str]:
        script = self._known(f"set -e\n{block.before}\n{block.script}")
        if block.place == READER:
            command = f"bash -c {shlex.quote(f'exec </dev/null; cd {folder}; {self.start} {script}')} 2>&1"
            reported = self._login.try_as(self.user, command)
        else:
            node = self.cluster.controller if block.place == "the controller" else self.cluster.computes[0]
            reported = node.run(f"bash -lc {shlex.quote(script)} 2>&1")
        return reported.rc, reported.stdout

    def _known(self, text: str) -> str:
        return renamed(text, self.names)

    def _put(self, path: Path, folder: str) -> None:
        content = base64.b64encode(self._known(path.read_text()).encode()).decode()
        self._login.run_as(self.user, f"echo {content} | base64 --decode > {folder}/{path.name}")


def linked(page: Path, text: str) -> list[Path]:
    """Return the files, no pages, to which a page links and which a reader may fetch by that."""
    found = {(page.parent / target).resolve() for target in _LINK.findall(text)}
    return sorted(path for path in found if path.is_file() and path.suffix in {".c", ".sh", ".yaml", ".py"})


def renamed(text: str, names: Mapping[str, str]) -> str:
    """Return a text with other names; one that is a part of a longer name stays."""
    known = "|".join(map(re.escape, names))
    return re.sub(rf"(?<![\w-])({known})(?![\w-])", lambda found: names[found[1]], text) if known else text
