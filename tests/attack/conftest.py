"""The standing attack suite: an ordinary user tries to get what is another's, on a live cluster.

A row is one test function: its marker says which finding it belongs to, its docstring what is tried; its parameters are
the ways tried. A way that passes was blocked, one that fails is open. `make attack` ends with one line a row
and writes results/attack.json.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.support.clusters.cluster import ROOT
from tests.support.clusters.fixtures import cluster, computes, controller, login, nodes, other_user, two_computes, user
from tests.support.clusters.user_clusters import fresh, site_images

__all__ = ["cluster", "computes", "controller", "login", "nodes", "other_user", "two_computes", "user"]
RESULTS = ROOT / "results/attack.json"


@dataclass
class Row:
    """One kind of attack and what became of its ways."""

    finding: str
    what: str
    ended: Counter[str] = field(default_factory=Counter)

    @property
    def tried(self) -> int:
        """How many ways were tried; one that does not apply to this site was not."""
        return self.ended["passed"] + self.ended["failed"]

    def line(self) -> str:
        """Return the row as `make attack` prints it."""
        left = f"  OPEN {self.ended['failed']}" if self.ended["failed"] else ""
        skipped = f"  not applicable {self.ended['skipped']}" if self.ended["skipped"] else ""
        return (
            f"{self.finding:<6} {self.what:<86} tried {self.tried:>4}  blocked {self.ended['passed']:>4}{left}{skipped}"
        )


ROWS = pytest.StashKey[dict[str, Row]]()


@pytest.fixture(scope="session")
def attacker(cluster):
    """The user who attacks: the site's second."""
    if len(cluster.users) < 3:
        pytest.skip("an attack needs three users: one attacks, one is attacked, one looks on")
    return cluster.users[1]


@pytest.fixture(scope="session")
def victim(cluster, attacker):
    """The user who is attacked: the site's third."""
    return cluster.users[2]


@pytest.fixture(scope="session")
def kubernetes(login):
    """Skip where the site has no layer kubernetes."""
    if login.run("test -e /etc/isthmus/kubernetes.json").rc:
        pytest.skip("the site has no layer kubernetes")


@pytest.fixture(scope="session")
def attackers_cluster(login, attacker, kubernetes):
    """The attacker's Kubernetes: up when the first test asks for it, purged at the end."""
    with fresh(login, attacker) as found:
        yield found


@pytest.fixture(scope="session")
def victims_cluster(login, victim, kubernetes):
    """The victim's Kubernetes, likewise."""
    with fresh(login, victim) as found:
        yield found


@pytest.fixture(scope="session")
def images(controller):
    """Short name -> an image of the site's registry."""
    return site_images(controller)


def pytest_configure(config):
    """Begin with no row."""
    config.stash[ROWS] = {}


def pytest_collection_modifyitems(config, items):
    """Make a row of each test function of this folder; one without a marker or a docstring is an error."""
    for item in items:
        if not item.path.is_relative_to(Path(__file__).parent):
            continue
        marker = item.get_closest_marker("attack")
        if marker is None or not item.function.__doc__:
            raise pytest.UsageError(f"{item.nodeid} needs @pytest.mark.attack(finding) and a docstring: what is tried")
        config.stash[ROWS].setdefault(_name(item.nodeid), Row(marker.args[0], item.function.__doc__.splitlines()[0]))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    """Count what became of a way."""
    report = yield
    row = item.config.stash[ROWS].get(_name(item.nodeid))
    # A way whose preparation fails was not blocked.
    if row and (report.when == "call" or not report.passed):
        row.ended[report.outcome] += 1
    return report


def pytest_terminal_summary(terminalreporter, config):
    """Print one line a row, and keep the rows."""
    rows = [row for row in config.stash[ROWS].values() if row.ended.total()]
    if not rows:
        return
    rows.sort(key=lambda row: (len(row.finding), row.finding))
    terminalreporter.section("attacks")
    for row in rows:
        terminalreporter.write_line(row.line())
    tried, still_open = sum(row.tried for row in rows), sum(row.ended["failed"] for row in rows)
    terminalreporter.write_line(f"{tried} ways tried, {tried - still_open} blocked, {still_open} open")
    RESULTS.parent.mkdir(exist_ok=True)
    shown = [{"finding": row.finding, "what": row.what, "tried": row.tried, **row.ended} for row in rows]
    RESULTS.write_text(json.dumps({"schema": 1, "rows": shown}, indent=1) + "\n")


def _name(nodeid: str) -> str:
    return nodeid.partition("[")[0]
