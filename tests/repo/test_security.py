"""The page of promises names tests that are there, and every file of attacks."""

import re

from tests.repo import tree

PAGE = (tree.ROOT / "docs/admins/security.md").read_text()
NAMED = sorted(set(re.findall(r"`(tests/[\w/.]+)::(\w+)`", PAGE)))


def test_every_promise_names_a_test():
    rows = PAGE.partition("| guarantee |")[2].partition("\n\n")[0].splitlines()[2:]
    assert len(rows) > 10
    assert not [row for row in rows if "::test_" not in row]


def test_named_tests_are_there():
    texts = {path: (tree.ROOT / path).read_text() for path, _ in NAMED if (tree.ROOT / path).is_file()}
    missing = [f"{path}::{name}" for path, name in NAMED if f"def {name}(" not in texts.get(path, "")]
    assert NAMED
    assert not missing


def test_every_file_of_attacks_is_named():
    files = [path.name for path in tree.files("tests/attack/test_*.py")]
    assert files
    assert not [name for name in files if name not in PAGE]
