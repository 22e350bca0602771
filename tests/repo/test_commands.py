"""`isthmus <command>` is found by name: the module of a command, and its reference, are called as it is."""

import argparse
from importlib import import_module

import pytest

from isthmus.cli.main import COMMANDS
from tests.repo import tree


@pytest.mark.parametrize("command", COMMANDS)
def test_command_is_the_module_of_its_name(command):
    assert COMMANDS[command].rpartition(".")[2] == command.replace("-", "_")
    subparsers = argparse.ArgumentParser().add_subparsers()
    import_module(COMMANDS[command]).register(subparsers)
    assert set(subparsers.choices) == {command}


def test_every_module_of_commands_is_one():
    modules = {path.stem for path in tree.files("src/isthmus/cli/commands/*.py") if path.name != "__init__.py"}
    assert modules <= {module.rpartition(".")[2] for module in COMMANDS.values()}
