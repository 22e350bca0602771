"""The static programs that run in containers."""

import signal
import subprocess

import pytest

from tests.unit.spank.conftest import SOURCE, run


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    """The folder with them."""
    folder = tmp_path_factory.mktemp("inside")
    run("make", "-s", "-C", SOURCE, "inside", f"OUT={folder}")
    return folder


@pytest.mark.parametrize("name", ["isthmus_hold", "isthmus_proxy", "isthmus_init"])
def test_program_needs_nothing_of_an_image(programs, name):
    headers = subprocess.run(
        ["readelf", "--program-headers", programs / name], capture_output=True, text=True, check=True
    )
    assert "LOAD" in headers.stdout
    assert not {"INTERP", "DYNAMIC"} & set(headers.stdout.split())


def test_hold_says_its_id_and_minds_no_signal(programs):
    with subprocess.Popen([programs / "isthmus_hold"], stdout=subprocess.PIPE) as running:
        assert running.stdout.read() == f"{running.pid}\n".encode()
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD, signal.SIGXCPU):
            running.send_signal(number)
        with pytest.raises(subprocess.TimeoutExpired):
            running.wait(0.1)
        running.kill()
    assert running.wait() == -signal.SIGKILL


def test_proxy_that_nobody_answers_ends(programs):
    assert subprocess.run([programs / "isthmus_proxy"], check=False).returncode == 126
