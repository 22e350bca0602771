"""Go, as the lock file pins it, builds the same program twice."""

import os
from pathlib import Path

import pytest

from isthmus.artifacts import table
from isthmus.clients.build import golang
from isthmus.clients.process import ProcessError
from isthmus.model.programs import Arch
from tests.support.clusters.cluster import ROOT

SMALLEST = "cni-loopback"
LOCK = ROOT / "locks/build.txt"
CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "isthmus/go"


@pytest.fixture(scope="module")
def program():
    return table.load(ROOT / "artifacts.yml")[SMALLEST]


@pytest.fixture
def builder(tmp_path, monkeypatch):
    """Go with nothing compiled yet; modules come from the deployer's cache."""
    (tmp_path / "cache").mkdir()
    CACHE.joinpath("modules").mkdir(parents=True, exist_ok=True)
    (tmp_path / "cache/modules").symlink_to(CACHE / "modules")
    return golang.Go(golang.find(LOCK, CACHE), tmp_path / "cache", golang.Limits(jobs=2, memory_mib=2048))


def build(builder, program, output, module=None):
    plan = program.build
    builder.build(plan, module or ROOT / "build/go" / plan.module, output, version=program.version, arch=Arch.AMD64)
    return output.read_bytes()


def test_building_twice_gives_the_same_bytes(builder, program, tmp_path):
    """Of what the deployer has compiled before, where it has, and from nothing."""
    deployers = golang.Go(builder.program, CACHE, builder.limits)
    first = build(deployers, program, tmp_path / "first")
    assert build(builder, program, tmp_path / "second") == first


def test_module_that_lacks_a_sum_is_not_completed(builder, program, tmp_path):
    module = tmp_path / "module"
    module.mkdir()
    for file in (ROOT / "build/go" / program.build.module).iterdir():
        (module / file.name).write_text("" if file.name == "go.sum" else file.read_text())
    with pytest.raises(ProcessError, match=r"go\.sum"):
        build(builder, program, tmp_path / "tool", module)
    assert not (module / "go.sum").read_text()


def test_lock_pins_go():
    assert golang.pinned(LOCK).count(".") == 2
