from pathlib import Path

import pytest

from tests.unit.spank.conftest import SOURCE, run, symbols

CALLS = (
    *("init", "init_post_opt", "local_user_init", "user_init", "job_prolog", "task_init_privileged", "task_init"),
    *("task_post_fork", "task_exit", "exit", "job_epilog"),
)
EXPORTED = {f"slurm_spank_{name}" for name in CALLS} | {"plugin_name", "plugin_type", "plugin_version"}
HEADERS = Path("/usr/include/slurm/spank.h")


def test_only_slurms_symbols_are_exported(built):
    assert symbols(built["plain"], "--defined-only") == EXPORTED | {"spank_plugin_version"}


def test_no_name_service_is_needed(built):
    """Slurm's users may be known to slurmctld only, and a name service may hang."""
    needed = symbols(built["plain"], "--undefined-only")
    assert not {name for name in needed if name.startswith(("getpw", "getgr", "getaddrinfo", "gethostby"))}


@pytest.mark.skipif(not HEADERS.exists(), reason="libslurm-dev is not installed")
def test_plugin_builds_against_the_headers_of_slurm(tmp_path):
    run("make", "-s", "-C", SOURCE, f"OUT={tmp_path}")
    assert symbols(tmp_path / "isthmus_spank.so", "--defined-only") == EXPORTED | {"spank_plugin_version"}


def test_build_leaves_nothing_in_the_source(built):
    assert not [path for path in SOURCE.iterdir() if path.suffix in {".so", ".o", ".d"}]
