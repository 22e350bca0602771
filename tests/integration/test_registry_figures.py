"""What isthmus-exporter gets of a registry with its real programs, and what is left when they end."""

import tempfile
from contextlib import contextmanager
from pathlib import Path

import pytest

from isthmus.clients.http import NoAnswerError
from isthmus.monitoring.parts import registry as part
from tests.support.servers import registries
from tests.unit.monitoring.test_slurm import values


@pytest.fixture(scope="module")
def registry():
    with tempfile.TemporaryDirectory(prefix="registry-") as folder, registries.running(Path(folder) / "r") as running:
        yield running


def figures(registry):
    return values(part.collect(registry.folder / "tokend"))


def is_up(registry):
    found = values(part.answers(f"https://{registry.address}", registry.folder / "tls/ca.crt"))
    assert found["isthmus_registry_answer_seconds"] < 10
    return found["isthmus_registry_up"] == 1


@contextmanager
def without(registry, name):
    registry.stop(name)
    try:
        yield
    finally:
        registry.start(name)


def requests(registry, what, outcome):
    return figures(registry)["isthmus_registry_requests_total", outcome, what]


def test_requests_are_counted_by_what_became_of_them(registry):
    before = {key: requests(registry, *key) for key in (("token", "ok"), ("token", "refused"), ("write", "refused"))}
    registry.image("alice", "alice/tool", "1")
    assert requests(registry, "token", "ok") > before["token", "ok"]
    registry.ask("GET", "/auth/token", "Basic no")
    assert requests(registry, "token", "refused") == before["token", "refused"] + 1
    registry.quotas({"alice": 0})
    assert registry.blob("alice", "alice/tool", b"more").status == 403
    assert requests(registry, "write", "refused") > before["write", "refused"]
    registry.quotas({"alice": 1, "bob": 1}, reserve_gib=2)
    found = figures(registry)
    assert found["isthmus_registry_accounts"] == 3
    assert found["isthmus_registry_disk_reserve_bytes"] == 2 << 30
    assert found["isthmus_registry_disk_free_bytes"] > 0


def test_figures_name_no_account(registry):
    assert not any("alice" in str(labels) for labels in figures(registry))


def test_registry_that_answers_is_up_and_asks_who_one_is(registry):
    assert is_up(registry)


@pytest.mark.parametrize("name", ["registry", "nginx"])
def test_registry_with_a_program_that_ended_is_down(registry, name):
    with without(registry, name):
        assert not is_up(registry)
    assert is_up(registry)


def test_certificate_of_another_authority_is_no_registry(registry, tmp_path):
    registries.certificates.write(tmp_path / "other")
    found = values(part.answers(f"https://{registry.address}", tmp_path / "other/ca.crt"))
    assert found["isthmus_registry_up"] == 0


def test_service_that_ended_has_no_figures(registry):
    with without(registry, "tokend"), pytest.raises(NoAnswerError):
        figures(registry)
