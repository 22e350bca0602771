"""The supervisor and its contract with the kubelet need nothing but Python."""

import ast
import sys

import pytest

from tests.repo import tree

PACKAGES = ("supervisor", "podproto")
MODULES = {
    f"{package}.{path.stem}": path.read_text()
    for package in PACKAGES
    for path in tree.files(f"src/isthmus/{package}/*.py")
}


@pytest.mark.parametrize("name", MODULES)
def test_imports_are_its_own_or_of_the_standard_library(name):
    for node in ast.walk(ast.parse(MODULES[name])):
        if isinstance(node, ast.Import):
            assert {alias.name.split(".")[0] for alias in node.names} <= sys.stdlib_module_names
        if isinstance(node, ast.ImportFrom):
            module = node.module or ""
            is_contract = module.startswith("isthmus.podproto")
            assert node.level == 1 or is_contract or module.split(".")[0] in sys.stdlib_module_names
