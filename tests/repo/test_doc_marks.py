"""Each block of commands in the docs is run by a test, or its mark says which test runs the same, or why none can.

The marks are those of tests/support/doc_blocks.py. A test covers a block when its module, the modules of tests that it
imports, its conftests, or molecule's files where it runs molecule, have the block's words: programs, verbs, long
options, names of playbooks and of extra variables.
"""

import ast
import itertools
import re
from functools import cache
from pathlib import Path

import pytest

from tests.repo import tree
from tests.support.clusters.doc_pages import TYPED
from tests.support.doc_blocks import blocks, words

PAGES = [path for path in tree.files("README.md", "docs/*.md") if blocks(path.read_text())]
# Page -> how many of its blocks nothing can run: these only become fewer.
NOT_RUN = {
    "README.md": 1,
    "docs/admins/bench.md": 1,
    "docs/admins/install.md": 2,
    "docs/admins/monitoring.md": 1,
    "docs/admins/parallelcluster.md": 2,
    "docs/explanation/testing.md": 2,
}
# Each stands before the program that matters.
BEFORE = {"cd", "cp", "sudo"}
WORD = re.compile(r"[a-z][a-z_-]*[a-z]")


def marked():
    return [(tree.shown(page), block) for page in PAGES for block in blocks(page.read_text())]


def covered():
    return [
        pytest.param(page, block, test, id=f"{page}:{block.line}")
        for page, block in marked()
        for test in block.covered_by
    ]


def needed(script):
    """The words of a block that a test which covers it has."""
    for command in words(script):
        program, *rest = [command[0].rpartition("/")[2], *command[1:]]
        if program in BEFORE:
            continue
        yield program
        for before, word in itertools.pairwise([program, *rest]):
            if before in ("-e", "--extra-vars"):
                yield from re.findall(r"(\w+)=", word)
            elif word.endswith(".yml"):
                yield Path(word).stem
            elif WORD.fullmatch(word) or (word.startswith("--") and WORD.fullmatch(word[2:].partition("=")[0])):
                yield word.partition("=")[0]


@cache
def text_of(path):
    """A module of tests with what it imports of tests, its conftests, and what molecule reads."""
    seen, found = {path, *(folder / "conftest.py" for folder in path.parents if tree.ROOT in folder.parents)}, []
    left = [each for each in seen if each.exists()]
    while left:
        text = left.pop().read_text()
        found.append(text)
        for module in imported(text) - seen:
            seen.add(module)
            left.append(module)
    if "molecule" in path.read_text():
        found += [each.read_text() for each in tree.files(".config/molecule/*.yml", "molecule/*.yml")]
    return "\n".join(found)


def imported(text):
    names = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module, *(f"{node.module}.{each.name}" for each in node.names)}
    paths = {tree.ROOT / f"{name.replace('.', '/')}.py" for name in names if name.startswith("tests")}
    return {path for path in paths if path.exists()}


def test_each_block_of_commands_is_marked():
    assert not [f"{page}:{block.line}" for page, block in marked() if not block.marked]


@pytest.mark.parametrize(("page", "block", "test"), covered())
def test_covering_test_is_there_and_has_the_commands(page, block, test):
    path, _, name = test.partition("::")
    text = (tree.ROOT / path).read_text()
    assert re.search(rf"^(async )?def {name}\(", text, re.MULTILINE), f"{page}: there is no {test}"


@pytest.mark.parametrize(
    ("page", "block"), [pytest.param(p, b, id=f"{p}:{b.line}") for p, b in marked() if b.covered_by]
)
def test_covering_tests_have_the_commands(page, block):
    known = "\n".join(text_of(tree.ROOT / test.partition("::")[0]) for test in block.covered_by)
    missing = [word for word in needed(block.script) if not re.search(rf"(?<![\w-]){word}(?![\w-])", known)]
    assert not missing, f"{page}: {block.covered_by} do not have these words"


def test_blocks_that_nothing_runs_become_fewer():
    pages = [page for page, block in marked() if block.reason]
    assert {page: pages.count(page) for page in pages} == NOT_RUN


def test_each_page_with_blocks_to_run_is_typed_by_the_tests_of_one_layer():
    run = sorted({page for page, block in marked() if block.place})
    assert run == sorted(itertools.chain(*TYPED.values()))
    for layer in TYPED:
        assert f'TYPED["{layer}"]' in (tree.ROOT / f"tests/system/{layer}/test_docs.py").read_text()
