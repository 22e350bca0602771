"""Cgroups of version 2 below a unit's own, with the kernel's own."""

import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from isthmus.clients.forks.cgroups import Cgroups
from tests.support.networks.namespaces import needs_root
from tests.support.wait import wait

pytestmark = needs_root
UNIT = """
import os, sys
from pathlib import Path
from isthmus.clients.forks.cgroups import Cgroups, join
mount, bounds = Path(sys.argv[1]), dict(word.split("=") for word in sys.argv[2:])
groups = Cgroups.below_own(bounds, mount)
descriptor = groups.make("2001")
pid = os.fork()
if not pid:
    join(descriptor)
    # What it starts is in there, too.
    os.execvp("sh", ["sh", "-c", "sleep 300 & sleep 300"])
print(pid, flush=True)
sys.stdin.read()
groups.end("2001")
os.waitpid(pid, 0)
groups.end("2001")
groups.end("none")
"""


@pytest.fixture
def unit():
    """The mount, a cgroup as a unit has one, and bounds that this machine has controllers for."""
    mounts = [line.split() for line in Path("/proc/mounts").read_text().splitlines() if " cgroup2 " in line]
    mount = Path(mounts[0][1]) if mounts else Path("/nowhere")
    folder = mount / f"isthmus-test-{os.getpid()}"
    try:
        folder.mkdir()
    except OSError:
        pytest.skip("no cgroup of version 2 that can be written to")
    known = (folder / "cgroup.controllers").read_text().split()
    yield mount, folder, [f"{name}.max={most}" for name, most in (("memory", 64 << 20), ("pids", 5)) if name in known]
    with suppress(OSError):
        (folder / "cgroup.kill").write_text("1")
    for each in (folder / "2001", folder / "parent", folder):
        wait(lambda each=each: remove(each), timeout_s=10)


def remove(folder):
    with suppress(OSError):
        folder.rmdir()
    return not folder.exists()


def processes(folder):
    return [int(line) for line in (folder / "cgroup.procs").read_text().split()]


def test_each_has_its_bounds_and_ends_as_a_whole(unit):
    mount, folder, bounds = unit
    join = f'echo $$ > {folder}/cgroup.procs && exec "$@"'
    program = [sys.executable, "-c", UNIT, str(mount), *bounds]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(["sh", "-c", join, "sh", *program], **pipes) as parent:
        first = int(parent.stdout.readline())
        assert processes(folder) == [], "with controllers for others it has no processes"
        # It begins beside its parent, and the kernel takes its time to move it.
        inside = wait(lambda: processes(folder / "2001"), lambda found: len(found) >= 2, timeout_s=10)
        assert first in inside
        assert processes(folder / "parent") == [parent.pid]
        for bound in bounds:
            name, _, most = bound.partition("=")
            assert (folder / "2001" / name).read_text().strip() == most
        parent.stdin.close()
        assert parent.wait(timeout=10) == 0
    wait(lambda: not any(Path(f"/proc/{pid}").exists() for pid in inside), timeout_s=10)


def test_host_without_them_is_an_error(tmp_path):
    with pytest.raises(OSError, match="no cgroup of version 2"):
        Cgroups.below_own({}, tmp_path)
    assert list(tmp_path.iterdir()) == []
