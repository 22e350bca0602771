"""Each Go program, and each package, built again with nothing compiled yet is the one in the cache."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from isthmus.artifacts import package, table
from isthmus.artifacts.store import digest
from isthmus.clients.build import golang
from isthmus.model.programs import Arch
from tests.support.clusters import playbooks
from tests.support.clusters.cluster import ROOT

CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "isthmus/go"
# The suite of conformance cases takes longer than all others together.
PROGRAMS = {
    name: program
    for name, program in table.load(ROOT / "artifacts.yml").items()
    if program.build and program.build.module != "conformance"
}


@pytest.fixture(scope="module")
def builder(tmp_path_factory):
    """Go with a build cache of its own; modules come from the deployer's."""
    named = json.dumps({"artifacts_programs": sorted(PROGRAMS)})
    assert playbooks.run("artifacts", "ansible-playbook", "playbooks/artifacts.yml", "-e", named).rc == 0
    cache = tmp_path_factory.mktemp("go")
    (cache / "modules").symlink_to(CACHE / "modules")
    return golang.Go(golang.find(ROOT / "locks/build.txt", CACHE), cache, golang.Limits(jobs=2, memory_mib=6144))


@pytest.mark.parametrize("name", PROGRAMS)
def test_program_is_built_to_the_same_bytes(name, builder, tmp_path):
    program = PROGRAMS[name]
    module = ROOT / "build/go" / program.build.module
    builder.build(program.build, module, tmp_path / name, version=program.version, arch=Arch.AMD64)
    kept = {blob.name for blob in (CACHE.parent / "programs/blobs").iterdir()}
    assert digest(tmp_path / name) in kept


def reported(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


@pytest.mark.parametrize("name", ["apptainer", "slurm"])
def test_package_is_built_to_the_same_bytes(name, tmp_path):
    arguments = {
        "recipe": str(ROOT / "build" / name),
        "targets": reported("apt-get", "indextargets", "--format", "$(RELEASE) $(REPO_URI) $(COMPONENT)"),
        "apt": reported("apt-config", "dump", "--no-empty", "Acquire"),
        "jobs": 2,
        "memory_mib": 6144,
    }
    (tmp_path / "go").symlink_to(CACHE)
    (tmp_path / "sources").symlink_to(CACHE.parent / "sources")
    kept = package.run(arguments | {"cache": str(CACHE.parent)}, print)
    if "no address gives the source" in kept.get("msg", ""):
        pytest.skip(kept["msg"])
    again = package.run(arguments | {"cache": str(tmp_path)}, print)
    assert (again["changed"], again["sha256"]) == (True, kept["sha256"])
