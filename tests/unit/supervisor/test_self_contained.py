"""The supervisor, its contract with the kubelet and its pauses between tries need nothing but Python."""

import ast
import sys

import pytest

from tests.repo import tree

PACKAGES = ("supervisor", "podproto")
FILES = (*(f"{package}/*.py" for package in PACKAGES), "support/backoff.py")
MODULES = {tree.shown(path): path.read_text() for name in FILES for path in tree.files(f"src/isthmus/{name}")}


@pytest.mark.parametrize("name", MODULES)
def test_imports_are_its_own_or_of_the_standard_library(name):
    for node in ast.walk(ast.parse(MODULES[name])):
        if isinstance(node, ast.Import):
            assert {alias.name.split(".")[0] for alias in node.names} <= sys.stdlib_module_names
        elif isinstance(node, ast.ImportFrom):
            module = node.module or ""
            is_own = module.startswith(("isthmus.podproto", "isthmus.supervisor", "isthmus.support.backoff"))
            assert node.level == 0
            assert is_own or module.split(".")[0] in sys.stdlib_module_names
