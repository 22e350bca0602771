"""Filter plugins are shims: Ansible only warns about one that cannot be loaded."""

import importlib.util
from collections import Counter

import pytest

from tests.repo import tree

SHIM_LINES = 15
SHIMS = tree.files("filter_plugins/*.py")


def filters_of(path):
    spec = importlib.util.spec_from_file_location(f"shim_{path.stem}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.FilterModule().filters()


@pytest.mark.parametrize("path", SHIMS, ids=lambda path: path.stem)
def test_shim_is_thin_and_loads(path):
    assert tree.lines(path) <= SHIM_LINES
    found = filters_of(path)
    assert found
    assert all(callable(function) for function in found.values())


def test_filter_names_are_unique():
    counted = Counter(name for path in SHIMS for name in filters_of(path))
    assert not [name for name, count in counted.items() if count > 1]
