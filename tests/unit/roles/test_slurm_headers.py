"""The module slurm_headers: the headers are those of the Slurm that was asked for."""

import pytest

from tests.support import ansible_modules

MADISON = (
    "libslurm-dev | 26.05.5-1 | forky\nlibslurm-dev | 24.11.5-4+deb13u1 | trixie\nlibslurm-dev | 24.11.5-4 | trixie\n"
)


@pytest.mark.parametrize(
    ("wanted", "version"), [("26.05.5", "26.05.5-1"), ("24.11.5", "24.11.5-4+deb13u1"), ("24.11", "")]
)
def test_headers_are_of_the_very_version(wanted, version):
    module = ansible_modules.load("roles/network/library/slurm_headers.py")
    assert module.choose(module.offered(MADISON), wanted) == version
