"""The supervisor and its contract with the kubelet need nothing but Python."""

import ast
import sys

import pytest

from tests.repo import tree

PACKAGES = ("supervisor", "podproto")
MODULES = {
    tree.shown(path): path.read_text() for package in PACKAGES for path in tree.files(f"src/isthmus/{package}/*.py")
}


@pytest.mark.parametrize("name", MODULES)
def test_imports_are_its_own_or_of_the_standard_library(name):
    for node in ast.walk(ast.parse(MODULES[name])):
        if isinstance(node, ast.Import):
            assert {alias.name.split(".")[0] for alias in node.names} <= sys.stdlib_module_names
        elif isinstance(node, ast.ImportFrom):
            module = node.module or ""
            is_own = module.startswith(("isthmus.podproto", "isthmus.supervisor"))
            assert node.level == 0
            assert is_own or module.split(".")[0] in sys.stdlib_module_names
