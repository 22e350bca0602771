"""The supervisor runs with nothing but an old Python."""

import ast
import sys

import pytest

from tests.repo import tree

MODULES = {path.stem: path.read_text() for path in tree.files("src/isthmus/supervisor/*.py")}


@pytest.mark.parametrize("name", MODULES)
def test_syntax_is_that_of_python_3_9(name):
    assert ast.parse(MODULES[name], feature_version=(3, 9))


@pytest.mark.parametrize("name", MODULES)
def test_imports_are_its_own_or_of_the_standard_library(name):
    for node in ast.walk(ast.parse(MODULES[name])):
        if isinstance(node, ast.Import):
            assert {alias.name.split(".")[0] for alias in node.names} <= sys.stdlib_module_names
        if isinstance(node, ast.ImportFrom):
            assert node.level == 1 or (node.module or "").split(".")[0] in sys.stdlib_module_names
