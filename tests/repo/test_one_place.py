"""What a library or one module does is done nowhere else by hand."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.repo import tree

PYTHON = tree.files("src/isthmus/*.py")
# What would be written -> the files that may.
ALONE = {
    r"CertificateBuilder\(": {"src/isthmus/support/certificates.py"},
    # Prometheus' text, and models of Kubernetes, are libraries' own.
    r"# (TYPE|HELP) [a-z{]": set(),
    r"^(from|import) kubernetes": set(),
    r"\bHistogram\(": {"src/isthmus/support/metrics.py"},
    # A pause that grows is a Backoff.
    r"pause\w* = .*min\(": set(),
}
PRODUCT = tree.files("src/*.py", "roles/*.py", "library/*.py", "build/*.py", "*_plugins/*.py")
# aiohttp asks and serves; modules that run where no Isthmus is have Ansible's own (ansible.module_utils.urls).
HTTP = {"aiohttp", "http.client", "http.server", "httpx", "pycurl", "requests", "urllib.request", "urllib3"}
OUR_HTTP = "isthmus.support.aio"
SPEAK_HTTP = (
    "src/isthmus/clients/",
    "src/isthmus/jobs/",
    "src/isthmus/kubelet/api/",
    "src/isthmus/node/",
    "src/isthmus/registry/",
)


@pytest.mark.parametrize("written", ALONE)
def test_nothing_is_done_twice(written):
    found = {tree.shown(path) for path in PYTHON if re.search(written, path.read_text(), re.MULTILINE)}
    assert found == ALONE[written]


def test_dpkg_is_asked_and_read_in_one_file():
    found = {tree.shown(path) for path in PRODUCT if re.search(r"dpkg-query.*--show|--showformat", path.read_text())}
    # Of the one file that is asked for its own name and version (dpkg-deb), not of what a host has.
    assert found == {"src/isthmus/support/modules/dpkg.py", "roles/slurm/library/slurm_switch.py"}


@cache
def imported(path: Path) -> frozenset[str]:
    """Return the modules that a file imports, also those that it does when it runs."""
    return frozenset(_imported(path))


def _imported(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (each.name for each in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module
            yield from (f"{node.module}.{each.name}" for each in node.names)


def test_one_library_speaks_http_and_only_in_these_folders():
    found = {(tree.shown(path), name) for path in PRODUCT for name in imported(path) if name in HTTP}
    assert {name for _, name in found} == {"aiohttp"}
    assert {path.rpartition("/")[0] for path, _ in found} == {f"src/{OUR_HTTP.replace('.', '/')}"}
    users = {tree.shown(path) for path in PRODUCT if any(name.startswith(OUR_HTTP) for name in imported(path))}
    assert {path for path in users if not path.startswith(SPEAK_HTTP)} == set()
