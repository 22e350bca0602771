"""Names that say nothing, paths of one machine, and code that looks at nothing."""

import ast
import re
from functools import cache

from tests.repo import tree

EMPTY_NAMES = {"utils", "util", "misc", "helpers", "helper", "common"}
MACHINE_PATHS = re.compile(r"(?<![\w.}])/(?:work|Users|workspace)/[\w.-]+")
PYTHON = ("src/*.py", "tests/*.py", "filter_plugins/*.py")


@cache
def modules():
    """Path -> what the tests below want to know of a module; each is parsed once."""
    return {path: looked_at(ast.parse(path.read_text())) for path in tree.files(*PYTHON)}


def looked_at(module):
    """Whether a module has a docstring, and the lines with a constant that is asserted and with a bare except."""
    nodes = [*ast.walk(module)]
    asserts = [node.lineno for node in nodes if isinstance(node, ast.Assert) and isinstance(node.test, ast.Constant)]
    excepts = [node.lineno for node in nodes if isinstance(node, ast.ExceptHandler) and node.type is None]
    return bool(ast.get_docstring(module)), asserts, excepts


def mappings(node):
    """Every mapping in a YAML document."""
    if isinstance(node, dict):
        yield node
    for item in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
        yield from mappings(item)


def test_modules_have_telling_names():
    parts = {
        tree.shown(path): EMPTY_NAMES & {*path.relative_to(tree.ROOT).parts, path.stem}
        for path in tree.files("src", "tests")
    }
    assert not {path for path, found in parts.items() if found}


def test_no_path_of_one_machine():
    binary = {".png", ".svg", ".gz"}
    found = {
        tree.shown(path): MACHINE_PATHS.findall(path.read_text())
        for path in tree.files(":!locks")
        if path.suffix not in binary
    }
    assert not {path: paths for path, paths in found.items() if paths}


def test_no_assertion_is_always_true():
    idle = (True, "true", [True], ["true"])
    found = [
        f"{tree.shown(path)}: {task.get('name')}"
        for path in tree.files("roles/*.yml", "playbooks/*.yml", "molecule/*.yml", ".config/*.yml")
        for task in mappings(tree.load(path))
        if (task.get("ansible.builtin.assert") or {}).get("that") in idle
    ]
    assert not found


def test_no_test_asserts_a_constant():
    assert not [f"{tree.shown(path)}:{line}" for path, (_, asserts, _) in modules().items() for line in asserts]


def test_no_bare_except():
    assert not [f"{tree.shown(path)}:{line}" for path, (_, _, excepts) in modules().items() for line in excepts]


def test_modules_have_docstrings():
    """The name of a test module is its docstring."""
    bare = [path for path, (has_docstring, _, _) in modules().items() if not has_docstring]
    assert not [tree.shown(path) for path in bare if not path.name.startswith("test_")]


def test_a_module_is_looked_at_whole():
    text = "def f():\n    assert True\n    try:\n        assert f\n    except:\n        pass\n"
    assert looked_at(ast.parse(text)) == (False, [2], [5])
    assert looked_at(ast.parse(f'"""Has one."""\n{text}'))[0]
