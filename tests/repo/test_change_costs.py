"""What a typical change costs in files of src: a kind of volumes two, a reason of pods one line.

A word that stands in another file is a place that whoever adds the next one must find.
"""

import ast
import re

import pytest

from isthmus.kubelet.volumes import registry
from tests.repo import tree

KUBELET, SUPERVISOR = "src/isthmus/kubelet/volumes", "src/isthmus/supervisor/volumes"
# What is a word of its own elsewhere: a container has an image, variables come from Secrets.
SHARED = {"image", "secret", "ephemeral"}
# The volume behind a claim, not that of a pod; and a PersistentVolume's own words.
OF_PERSISTENT_VOLUMES = {"src/isthmus/kubelet/objects/claims.py", f"{KUBELET}/claim.py"}


def words(path):
    """Return the constant texts of a module, without its docstrings."""
    nodes = [*ast.walk(ast.parse(path.read_text()))]
    docs = {id(one.value) for one in nodes if isinstance(one, ast.Expr)}
    return {one.value for one in nodes if isinstance(one, ast.Constant) and id(one) not in docs}


HOLDERS = {tree.shown(path): words(path) for path in tree.files("src/isthmus/kubelet/*.py")}
SOURCES = {tree.shown(path): words(path) for path in tree.files("src/isthmus/supervisor/*.py")}


def module(name):
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).replace("persistent_Volume_Claim", "claim").lower()


@pytest.mark.parametrize("name", sorted(registry.kinds().keys() - SHARED))
def test_kind_of_volumes_is_named_in_its_own_file_of_the_kubelet(name):
    found = {path for path, known in HOLDERS.items() if name in known}
    # What variables of containers come from has the same name.
    shared = OF_PERSISTENT_VOLUMES if name == "hostPath" else {"src/isthmus/kubelet/translate/pod.py"}
    assert found - shared == {f"{KUBELET}/{module(name)}.py"}


@pytest.mark.parametrize("kind", ["dir", "memory", "files", "host", "image"])
def test_kind_of_the_plan_is_asked_for_in_its_own_file_of_the_supervisor(kind):
    """Nobody compares a volume's kind with a word: each asks the kind what holds for it."""
    assert f"{SUPERVISOR}/{kind}.py" in SOURCES
    compared = [
        f"{tree.shown(path)}:{node.lineno}"
        for path in tree.files("src/isthmus/supervisor/*.py", "src/isthmus/podproto/*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Compare) and ast.unparse(node.left) == "volume.kind"
    ]
    assert compared == []
