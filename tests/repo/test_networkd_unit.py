"""The unit of isthmus-networkd leaves room for root beside all that users may hold."""

from isthmus.network.api.server import ACCOUNTS_CONNECTIONS_MAX, CONNECTIONS_MAX, REFUSED_HELD_MAX
from tests.repo.tree import ROOT

# Root's requests at once: the prologs of a node's jobs, each with a thread for what it does not wait for.
ROOTS = 512


def limits():
    lines = (ROOT / "roles/network/templates/isthmus-networkd.service.j2").read_text().splitlines()
    return dict(line.split("=", 1) for line in lines if "=" in line and not line.startswith("#"))


def test_users_connections_leave_threads_and_descriptors_for_root():
    assert int(limits()["TasksMax"]) >= ACCOUNTS_CONNECTIONS_MAX + ROOTS
    assert int(limits()["LimitNOFILE"]) >= ACCOUNTS_CONNECTIONS_MAX + REFUSED_HELD_MAX + 2 * ROOTS
    assert limits()["MemoryMax"]


def test_one_account_is_few_of_all():
    assert 8 * CONNECTIONS_MAX < ACCOUNTS_CONNECTIONS_MAX
