"""Nothing grows beyond what one can hold in mind: the limits of STYLE.md."""

import ast
import re
from collections import Counter
from pathlib import Path

import pytest

from tests.repo import tree

FILES = {
    "task file": (120, ("roles/*/tasks/*.yml",)),
    "playbook": (60, ("playbooks/*.yml", "site.yml")),
    "Python file": (600, ("src/*.py", "filter_plugins/*.py")),
    "test file": (300, ("tests/*.py",)),
    "C file": (400, ("src/*.c", "src/*.h")),
    "template": (100, ("*.j2",)),
}
ROLE_LINES = 450
PACKAGE_MODULES = 15
PREFIXES = 2
FUNCTION_LINES = {"src": 50, "filter_plugins": 50, "tests": 30}
C_FUNCTION_LINES = 70
EXPRESSION_LINES = 3


@pytest.mark.parametrize("kind", FILES)
def test_files_are_short(kind):
    limit, patterns = FILES[kind]
    counted = {tree.shown(path): tree.lines(path) for path in tree.files(*patterns)}
    assert not {path: count for path, count in counted.items() if count > limit}


def test_roles_are_short():
    """A role counts as a whole; where it has task folders, each folder does."""
    foldered = {path.parts[-4] for path in tree.files("roles/*/tasks/*/*.yml") if path.parts[-3] == "tasks"}
    counted: Counter[str] = Counter()
    for path in tree.files("roles/*.yml"):
        role = path.relative_to(tree.ROOT / "roles").parts[0]
        counted[tree.shown(path.parent) if role in foldered else f"roles/{role}"] += tree.lines(path)
    assert not {unit: count for unit, count in counted.items() if count > ROLE_LINES}


def test_packages_show_what_they_hold():
    """A package has few modules, and a prefix that many of them share is a package of its own."""
    packages: dict[Path, Counter[str]] = {}
    for path in tree.files("src/*.py"):
        if path.name not in ("__init__.py", "__main__.py"):
            packages.setdefault(path.parent, Counter())[path.stem.partition("_")[0]] += 1
    assert not {tree.shown(path): held.total() for path, held in packages.items() if held.total() > PACKAGE_MODULES}
    assert not [
        (tree.shown(path), *held.most_common(1)) for path, held in packages.items() if max(held.values()) > PREFIXES
    ]


@pytest.mark.parametrize("folder", FUNCTION_LINES)
def test_python_functions_are_short(folder):
    long = [
        f"{tree.shown(path)}:{node.lineno} {node.name}"
        for path in tree.files(f"{folder}/*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (node.end_lineno or 0) - node.lineno >= FUNCTION_LINES[folder]
    ]
    assert not long


def test_c_functions_are_short():
    bodies = re.compile(r"^\{\n(.*?)^\}", re.MULTILINE | re.DOTALL)
    counted = {
        tree.shown(path): max((body.count("\n") for body in bodies.findall(path.read_text())), default=0)
        for path in tree.files("src/*.c")
    }
    assert not {path: count for path, count in counted.items() if count > C_FUNCTION_LINES}


def test_jinja_expressions_are_short():
    expression = re.compile(r"\{\{.*?\}\}|\{%.*?%\}", re.DOTALL)
    long = [
        f"{tree.shown(path)}: {found}"
        for path in tree.files("*.yml", "*.j2")
        for found in expression.findall(path.read_text())
        if found.count("\n") >= EXPRESSION_LINES
    ]
    assert not long
