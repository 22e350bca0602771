"""What the doctor says of certificates and of authorities near their end."""

from datetime import UTC, datetime, timedelta
from ipaddress import IPv4Address
from types import SimpleNamespace

import pytest

from isthmus.controlplane.doctor import keys as doctor_keys
from isthmus.controlplane.doctor.findings import Level
from isthmus.controlplane.layout import Home
from isthmus.controlplane.pki import authorities
from isthmus.controlplane.pki import issuing as pki
from isthmus.controlplane.pki.authorities import LIFE, OVERLAP, WINDOW

NOW = datetime(2030, 1, 1, tzinfo=UTC)
DAY = timedelta(days=1)
NAMES = pki.Names("alice", "slurm", "cluster.local", IPv4Address("10.96.0.1"))
NEXT_START = "; the next start makes its successor"
# How long the authority lives yet, how long ago its successor was made, and what is said.
SUCCESSIONS = {
    "a start is due": (WINDOW - DAY, None, Level.OK, NEXT_START),
    "no start for a year": (OVERLAP - DAY, None, Level.WARNING, NEXT_START),
    "waits": (WINDOW - 9 * DAY, 8 * DAY, Level.OK, "; its successor signs from the first start after 2030-12-24"),
    "hurried": (130 * DAY, 8 * DAY, Level.OK, "; its successor signs from the first start after 2030-01-11"),
    "signs": (OVERLAP - DAY, OVERLAP, Level.WARNING, "; its successor signs from the next start on"),
}


@pytest.mark.parametrize("left, made, level, words", SUCCESSIONS.values(), ids=SUCCESSIONS)
def test_succession_is_reported(tmp_path, left, made, level, words):
    context = SimpleNamespace(home=Home(tmp_path))
    layout = context.home.cluster
    pki.ensure(layout, NAMES, NOW + left - LIFE)
    if made is not None:
        list(authorities.advance(layout, NOW - made))
    pki.ensure(layout, NAMES, NOW)
    found = list(doctor_keys.certificates(context, NOW))
    assert [each.level for each in found] == [Level.OK] + [level] * len(authorities.NAMES)
    assert found[1].what == f"authority ca ends on {NOW + left:%Y-%m-%d}{words}"
    assert [bool(each.remedy) for each in found[1:]] == [level is Level.WARNING] * len(authorities.NAMES)


@pytest.mark.parametrize(
    ("age", "level", "words"),
    [
        (DAY, Level.OK, "certificates are good until 2030-12-31 (admin)"),
        (366 * DAY, Level.FAILURE, "admin expired on 2029-12-31"),
    ],
)
def test_first_end_is_reported(tmp_path, age, level, words):
    context = SimpleNamespace(home=Home(tmp_path))
    pki.ensure(context.home.cluster, NAMES, NOW - age)
    (found,) = doctor_keys.certificates(context, NOW)
    assert (found.level, found.what) == (level, words)


def test_no_cluster_has_no_certificates(tmp_path):
    assert list(doctor_keys.certificates(SimpleNamespace(home=Home(tmp_path)), NOW)) == []
