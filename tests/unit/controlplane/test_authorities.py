"""How one authority succeeds another: when, in which steps, who trusts whom meanwhile, and after a crash."""

from datetime import UTC, datetime, timedelta
from ipaddress import IPv4Address
from shutil import copytree

import pytest

from isthmus.controlplane.errors import ControlPlaneError
from isthmus.controlplane.layout import Layout
from isthmus.controlplane.pki import authorities, files
from isthmus.controlplane.pki import issuing as pki
from isthmus.controlplane.pki.authorities import LIFE, OVERLAP, WINDOW
from isthmus.support import durable

BEGUN = datetime(2026, 1, 1, tzinfo=UTC)
END = BEGUN + LIFE
DAY = timedelta(days=1)
NAMES = pki.Names("alice", "slurm", "cluster.local", IPv4Address("10.96.0.1"))
CA = "isthmus ca"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Made once: every file is synced."""
    made = Layout(tmp_path_factory.mktemp("pki") / "cluster")
    pki.ensure(made, NAMES, BEGUN)
    return made


@pytest.fixture(autouse=True)
def no_syncs(monkeypatch):
    """Some thousand files are written here."""
    monkeypatch.setattr(durable, "sync", lambda path: None)


@pytest.fixture
def layout(made, tmp_path):
    return Layout(copytree(made.folder, tmp_path / "cluster"))


def start(layout, now):
    """Do what a start does with keys."""
    steps = list(authorities.advance(layout, now))
    pki.ensure(layout, NAMES, now)
    return steps


def trusted(layout, name="ca"):
    return [each.subject.rfc4514_string().removeprefix("CN=") for each in pki_read(layout, name)]


def pki_read(layout, name):
    return files.read(layout.certificate(name))


def signer_of(layout, leaf):
    return pki_read(layout, leaf)[0].issuer.rfc4514_string().removeprefix("CN=")


def successor(now):
    return f"{CA} {now:%Y-%m-%d}"


FIRST = END - WINDOW + DAY
# Starts, then what is trusted, the signer first.
SUCCESSIONS = {
    "long before": ((END - WINDOW,), [CA]),
    "published": ((FIRST,), [CA, successor(FIRST)]),
    "published once": ((FIRST, FIRST + DAY), [CA, successor(FIRST)]),
    "not yet": ((FIRST, FIRST + OVERLAP - DAY), [CA, successor(FIRST)]),
    "signs": ((FIRST, FIRST + OVERLAP), [successor(FIRST), CA]),
    "ended": ((FIRST, FIRST + OVERLAP, END), [successor(FIRST)]),
    "down for the overlap": ((FIRST, END + DAY), [successor(FIRST)]),
    "late": ((END - 200 * DAY,), [CA, successor(END - 200 * DAY)]),
    "late, then near": ((END - 200 * DAY, END - 119 * DAY), [successor(END - 200 * DAY), CA]),
    "very late": ((END - 9 * DAY, END - 9 * DAY), [CA, successor(END - 9 * DAY)]),
    "very late, a day on": ((END - 9 * DAY, END - 8 * DAY), [successor(END - 9 * DAY), CA]),
    "too late": ((END + DAY,), [successor(END + DAY)]),
    "far too late": ((FIRST, FIRST + LIFE + DAY), [successor(FIRST + LIFE + DAY)]),
}


@pytest.mark.parametrize("starts, expected", SUCCESSIONS.values(), ids=SUCCESSIONS)
def test_succession(layout, starts, expected):
    for now in starts:
        start(layout, now)
    assert trusted(layout) == expected
    assert signer_of(layout, "admin") == expected[0]
    assert [signer_of(layout, authorities.SIGNER)] == trusted(layout, authorities.SIGNER) == expected[:1]
    waits = len(expected) == 2 and expected[0] == CA
    assert layout.key("ca-next").exists() == waits


def test_every_authority_has_a_successor(layout):
    assert [step.split()[0] for step in start(layout, FIRST)] == list(authorities.NAMES)
    assert {len(pki_read(layout, name)) for name in authorities.NAMES} == {2}


def test_running_cluster_keeps_its_authorities(layout):
    start(layout, FIRST)
    before = layout.certificate("ca").read_bytes()
    pki.ensure(layout, NAMES, FIRST + OVERLAP)
    assert layout.certificate("ca").read_bytes() == before
    assert signer_of(layout, "admin") == CA


def test_what_the_old_one_signed_ends_before_the_new_one_signs_unknown(layout):
    # A kubeconfig of the moment before the successor was trusted.
    pki.ensure(layout, NAMES, FIRST - DAY)
    copied = pki_read(layout, "admin")[0]
    start(layout, FIRST)
    assert copied.not_valid_after_utc < authorities.read(layout, "ca", FIRST).signs_from


def test_leaf_that_ends_with_its_authority_is_made_once(layout):
    start(layout, END - 9 * DAY)
    assert pki.ensure(layout, NAMES, END - 9 * DAY) == []


class CrashError(Exception):
    """The program ends here."""


@pytest.mark.parametrize("now", [FIRST, FIRST + OVERLAP, END], ids=["publish", "sign", "forget"])
@pytest.mark.parametrize("writes", range(5))
def test_crash_at_any_write_is_completed(layout, monkeypatch, now, writes):
    for before in (each for each in (FIRST, FIRST + OVERLAP) if each < now):
        start(layout, before)
    whole = start_whole(layout, now)
    left = iter(range(writes))

    def crash(path, content, mode):
        if next(left, None) is None:
            raise CrashError
        return durable_write(path, content, mode)

    durable_write = durable.write
    monkeypatch.setattr(durable, "write", crash)
    with pytest.raises(CrashError):
        start(layout, now)
    assert all(layout.certificate(name).exists() for name in authorities.NAMES)
    monkeypatch.setattr(durable, "write", durable_write)
    start(layout, now)
    assert trusted(layout) == whole
    assert signer_of(layout, "admin") == signer_of(layout, authorities.SIGNER) == whole[0]


def start_whole(layout, now):
    """Return the result of a start without a crash."""
    other = Layout(copytree(layout.folder, layout.folder.parent / "whole"))
    start(other, now)
    return trusted(other)


def test_successor_without_its_key_is_replaced(layout):
    start(layout, FIRST)
    layout.key("ca-next").unlink()
    start(layout, FIRST + DAY)
    assert trusted(layout) == [CA, successor(FIRST + DAY)]


def test_key_that_fits_nothing_is_reported(layout):
    layout.key("ca").write_bytes(layout.key("admin").read_bytes())
    with pytest.raises(ControlPlaneError, match=r"ca\.key does not fit .*ca\.crt; bring both back"):
        start(layout, FIRST)


def test_files_are_the_owners_alone(layout):
    start(layout, FIRST)
    assert {path.stat().st_mode & 0o777 for path in layout.pki.iterdir()} == {0o600}
