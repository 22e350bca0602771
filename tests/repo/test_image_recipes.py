"""Scripts that change the root of an image never take this machine's for it."""

import subprocess

import pytest
import yaml

from isthmus.filters.images.image import image_packages
from tests.repo import tree

SCRIPTS = tree.files("build/images/*customize.sh")
RECIPES = tree.files("build/images/*recipe.yml")
GUARD = """
set -eu
root=${1:-}
if [ ! -d "$root" ] || [ "$(realpath "$root")" = / ]; then
    echo "usage: customize.sh FOLDER, the root of an image" >&2
    exit 2
fi
"""
# The root by other names, and what is no folder.
WORDS = ["", "/", "//etc/..", "/etc/passwd", "/nowhere/at/all"]


def guarded(script):
    """Whether nothing but comments comes before the guard; what is not may not be run."""
    lines = [line for line in script.read_text().splitlines() if line and not line.startswith("#")]
    return lines[:6] == GUARD.strip().splitlines()


def test_every_script_is_looked_at():
    assert {path.parent.name for path in SCRIPTS} >= {"busybox", "agnhost", "mpi-base", "mpi-operator-openmpi"}


def test_every_script_begins_with_the_guard():
    assert not [tree.shown(path) for path in SCRIPTS if not guarded(path)]


@pytest.mark.parametrize("script", SCRIPTS, ids=tree.shown)
def test_script_refuses_what_is_no_root_of_an_image(script):
    assert guarded(script)
    for words in ([], *([word] for word in WORDS)):
        done = subprocess.run([script, *words], capture_output=True, text=True, timeout=60)
        assert (done.returncode, done.stdout, done.stderr.split(":")[0]) == (2, "", "usage"), words


@pytest.mark.parametrize("recipe", RECIPES, ids=tree.shown)
def test_recipe_names_scripts_that_are_there(recipe):
    base = tree.load(recipe).get("base")
    assert base is None or (tree.ROOT / "build/images" / base / "customize.sh").exists()


def test_each_layer_says_what_an_image_of_a_node_has_of_it():
    """As plain data: a template of a host's variables is none on the deployer."""
    named = yaml.safe_load((tree.ROOT / "roles/image/vars/main.yml").read_text())["_image_variables"]
    texts = {name.split("/")[0]: (tree.ROOT / "roles" / name).read_text() for name in named}
    assert {"munge", "nftables", "slurmd"} <= {*image_packages(texts)}
