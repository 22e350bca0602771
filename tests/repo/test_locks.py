"""Lock files: exact, hashed, of one mind, and silent about where packages come from."""

import re
import tomllib

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.repo import tree

# Groups that have a lock, and a venv, of their own: no deployer needs them otherwise.
APART = ("build", "parallelcluster", "intel-mpi", "moto")
LOCKS = ("deployer", "runtime", *APART)
PYPROJECT = tomllib.loads((tree.ROOT / "pyproject.toml").read_text())


def text(lock):
    return (tree.ROOT / f"locks/{lock}.txt").read_text()


def pins(lock):
    found = re.findall(r"^([A-Za-z0-9._-]+)(?:\[[^]]*\])?==([^ ;\\]+)", text(lock), re.MULTILINE)
    return {canonicalize_name(name): version for name, version in found}


def unmet(requirements, lock):
    wanted = [Requirement(text) for text in requirements]
    return [str(one) for one in wanted if not one.specifier.contains(pins(lock).get(canonicalize_name(one.name), "0"))]


def test_runtime_agrees_with_deployer():
    deployer = pins("deployer")
    assert {name: deployer.get(name) for name in pins("runtime")} == pins("runtime")


@pytest.mark.parametrize("lock", LOCKS)
def test_every_pin_has_hashes(lock):
    requirements = re.split(r"\n(?=\S)", re.sub(r"^ *#.*\n", "", text(lock), flags=re.MULTILINE).strip())
    assert len(requirements) == len(pins(lock))
    assert not [line.split()[0] for line in requirements if "--hash=sha256:" not in line]


@pytest.mark.parametrize("lock", LOCKS)
def test_lock_names_no_source(lock):
    assert not re.findall(r"\S*://\S*|--\S*(?:index|links|host)\S*", text(lock))


@pytest.mark.parametrize("group", PYPROJECT["dependency-groups"])
def test_lock_covers_group(group):
    assert unmet(PYPROJECT["dependency-groups"][group], group if group in APART else "deployer") == []


def test_runtime_covers_the_package():
    assert unmet(PYPROJECT["project"]["dependencies"], "runtime") == []
