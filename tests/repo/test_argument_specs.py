"""A role's arguments are its defaults: the same keys, the same values, for every entry point."""

import pytest

from tests.repo import tree

SPECS = tree.files("roles/*/meta/argument_specs.yml")
ENTRIES = [
    pytest.param(path.parts[-3], entry, id=f"{path.parts[-3]}-{entry}")
    for path in SPECS
    for entry in tree.load(path)["argument_specs"]
]


def defaults_of(role):
    found = tree.files(f"roles/{role}/defaults/*.yml")
    return {key: value for path in found for key, value in (tree.load(path) or {}).items()}


def options_of(role, entry):
    specs = tree.load(tree.ROOT / f"roles/{role}/meta/argument_specs.yml")["argument_specs"]
    return specs[entry].get("options") or {}


def test_every_role_has_argument_specs():
    assert {path.parts[-3] for path in SPECS} == tree.names("roles")


@pytest.mark.parametrize(("role", "entry"), ENTRIES)
def test_arguments_are_the_defaults(role, entry):
    """An entry point other than main may take no arguments at all."""
    options = options_of(role, entry)
    given = {key: option["default"] for key, option in options.items() if "default" in option}
    assert given == (defaults_of(role) if options or entry == "main" else {})


@pytest.mark.parametrize(("role", "entry"), ENTRIES)
def test_arguments_are_described(role, entry):
    bare = [key for key, option in options_of(role, entry).items() if not option.get("description")]
    assert not bare


@pytest.mark.parametrize("role", sorted(tree.names("roles")))
def test_defaults_bear_the_role_name(role):
    assert [key for key in defaults_of(role) if not key.startswith(f"{role}_")] == []
