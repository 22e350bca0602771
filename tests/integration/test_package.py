"""The project's wheel: built of nothing but what its key holds, installed and run without a package index.

Nodes keep a wheel as long as its key is the same.
"""

import shutil
import subprocess
import sys
import venv
from zipfile import ZipFile

import pytest

from isthmus.filters.trust.identity import base_program_key
from tests.repo.tree import ROOT

# What role base takes aside; base_program_key reads all of it.
PARTS = ("locks/runtime.txt", "pyproject.toml", "LICENSE", "src/isthmus")


def copied(folder):
    for part in PARTS:
        place = folder / part
        place.parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / part).is_dir():
            shutil.copytree(ROOT / part, place)
        else:
            shutil.copy(ROOT / part, place)
    return folder


def built(folder, place):
    """Build as role base does from a copy, and role image from the tree itself; the wheel's path."""
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-index", "--no-build-isolation"]
    subprocess.run([*command, "--wheel-dir", place, folder], check=True, capture_output=True)
    (wheel,) = place.glob("*.whl")
    return wheel


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    return built(copied(tmp_path_factory.mktemp("plain")), tmp_path_factory.mktemp("wheel"))


def test_wheel_of_the_tree_itself_is_the_same(wheel, tmp_path):
    assert built(ROOT, tmp_path).read_bytes() == wheel.read_bytes()


def test_wheel_of_a_tree_with_other_texts_is_the_same(wheel, tmp_path):
    tree = copied(tmp_path / "tree")
    for name in ("README.md", "README", "CHANGELOG.md", "NEWS", "docs/index.md", "src/other/more.py", "isthmus.toml"):
        (tree / name).parent.mkdir(exist_ok=True)
        (tree / name).write_text("other words\n")
    assert base_program_key(str(tree)) == base_program_key(str(ROOT))
    assert built(tree, tmp_path / "wheels").read_bytes() == wheel.read_bytes()


def test_wheel_has_the_package_its_licence_and_what_is_said_in_pyproject(wheel):
    names = {name.partition("/")[0] for name in ZipFile(wheel).namelist()}
    info = next(name for name in names if name.endswith(".dist-info"))
    assert names == {"isthmus", info}
    inside = {name.removeprefix(f"{info}/") for name in ZipFile(wheel).namelist() if name.startswith(info)}
    assert inside == {"METADATA", "WHEEL", "RECORD", "entry_points.txt", "licenses/LICENSE"}


@pytest.mark.parametrize("part", ["LICENSE", "pyproject.toml"])
def test_key_follows_what_the_wheel_is_made_of(tmp_path, part):
    tree = copied(tmp_path)
    before = base_program_key(str(tree))
    with (tree / part).open("a") as file:
        file.write("# more\n")
    assert base_program_key(str(tree)) != before


def test_installed_command_reports_its_version(wheel, tmp_path):
    # The nodes' own dependencies come from the lock file; here those of the deployer serve.
    venv.create(tmp_path, with_pip=False, system_site_packages=False)
    install = [sys.executable, "-m", "pip", "--python", tmp_path / "bin/python", "install", "--quiet"]
    subprocess.run([*install, "--no-index", "--no-deps", wheel], check=True)
    site = next((tmp_path / "lib").glob("python*/site-packages"))
    deployer = next(path for path in sys.path if path.endswith("site-packages"))
    (site / "deployer.pth").write_text(f"{deployer}\n")
    shown = subprocess.run([tmp_path / "bin/isthmus", "--help"], check=True, capture_output=True, text=True).stdout
    assert "info" in shown
