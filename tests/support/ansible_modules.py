"""Runs a module of Ansible in this process, as its host would."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import json
from types import ModuleType
from typing import Any

import ansible.module_utils
from ansible.module_utils.testing import patch_module_args

from tests.repo import tree

# As ansible.cfg has it.
ansible.module_utils.__path__.append(str(tree.ROOT / "src/isthmus/support/modules"))


def load(path: str) -> ModuleType:
    """Load a module of the tree, such as `library/host_files.py`."""
    spec = importlib.util.spec_from_file_location(path.rpartition("/")[2].removesuffix(".py"), tree.ROOT / path)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def run(module: ModuleType, **arguments: Any) -> dict[str, Any]:
    """Run a module's main() with these arguments; returns its result, also that of a failure."""
    printed = io.StringIO()
    with patch_module_args(arguments), contextlib.redirect_stdout(printed), contextlib.suppress(SystemExit):
        module.main()
    result: dict[str, Any] = json.loads(printed.getvalue())
    return result
