"""`isthmus <command>` is found by name: the module of a command, and its reference, are called as it is."""

import argparse

import pytest

from isthmus.cli.main import TOOLS
from tests.repo import tree


def registered(tool):
    """The commands that a tool adds."""
    subparsers = argparse.ArgumentParser().add_subparsers()
    tool.register(subparsers)
    return set(subparsers.choices)


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.__name__)
def test_command_is_the_module_of_its_name(tool):
    module = tool.__name__.rpartition(".")[2]
    assert {name.replace("-", "_") for name in registered(tool)} == {module}


def test_every_module_of_commands_is_one_or_part_of_one():
    commands = {tool.__name__.rpartition(".")[2] for tool in TOOLS}
    # images has verbs with modules of their own.
    parts = {"image_mirrors": "images", "image_registry": "images"}
    modules = {path.stem for path in tree.files("src/isthmus/cli/commands/*.py") if path.name != "__init__.py"}
    assert {parts.get(each, each) for each in modules} <= commands
