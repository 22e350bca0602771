"""What runs beside the programs: it goes on without the home, and asks each program whether it lives."""

import asyncio
import errno
import json
import os
from ipaddress import IPv4Address
from pathlib import Path
from types import SimpleNamespace

import pytest

from isthmus.clients.kube.errors import KubeError
from isthmus.controlplane import run
from isthmus.controlplane.layout import Home, Layout
from isthmus.controlplane.programs import Site
from isthmus.controlplane.settings import Settings
from tests.support import virtual_time

DAY_S = 24 * 3600.0


def beside(monkeypatch, loop, use):
    """Run a loop in virtual time while `use` looks at what it does."""

    async def here(work, *arguments):
        return work(*arguments)

    async def main(clock):
        monkeypatch.setattr(run.asyncio, "to_thread", here)
        task = asyncio.ensure_future(loop())
        await use()
        assert not task.done(), task.exception()
        task.cancel()

    virtual_time.run(main)


def stale(*_):
    raise OSError(errno.ESTALE, os.strerror(errno.ESTALE))


def test_home_that_takes_no_status_ends_no_loop(monkeypatch, tmp_path, caplog):
    layout, changed = Layout(tmp_path / "gone"), asyncio.Event()
    keeper = SimpleNamespace(states=lambda: {"etcd": {"state": "ready"}})

    async def use():
        changed.set()
        await asyncio.sleep(600)
        layout.folder.mkdir()
        await asyncio.sleep(60)

    beside(monkeypatch, lambda: run._write_changes(layout, keeper, changed), use)
    assert json.loads(layout.programs.read_text())["programs"] == {"etcd": {"state": "ready"}}
    assert [one.getMessage().count("they continue, check the home") for one in caplog.records] == [1]


def test_home_that_is_stale_ends_no_renewal(monkeypatch, tmp_path):
    renewed, answers = [], iter([stale, lambda *_: [], stale, lambda *_: ["apiserver"]])
    setup = SimpleNamespace(home=Home(tmp_path))
    monkeypatch.setattr(run, "_names", lambda setup: None)
    monkeypatch.setattr(run.pki, "ensure", lambda *given: next(answers, lambda *_: [])(*given))
    monkeypatch.setattr(run, "_write_kubeconfig", renewed.append)
    beside(monkeypatch, lambda: run._renew(setup), lambda: asyncio.sleep(5 * DAY_S))
    assert renewed == [setup]


class Api:
    """A program's server: says yes, says no, or does not answer."""

    answer, asked = None, None

    def __init__(self, access, timeout_s=0.0):
        assert 0 < timeout_s < 10

    def text(self, path):
        Api.asked = path
        if Api.answer:
            raise Api.answer
        return "ok"


@pytest.mark.parametrize(
    ("answer", "lives"), [(None, True), (KubeError("not yet", 500), True), (KubeError("no answer"), False)]
)
def test_each_program_is_asked_whether_it_lives(monkeypatch, tmp_path, answer, lives):
    """What it says is another matter: one that waits for etcd would be restarted for ever."""
    monkeypatch.setattr(run, "ApiServer", Api)
    monkeypatch.setattr(Api, "answer", answer)
    site = Site(Settings(Path("/opt/image")), Layout(Path("/cluster")), IPv4Address("10.64.0.3"))
    setup = run.Run("1", "alice", Home(tmp_path), site, lambda name, words, memory: [name], ())
    found = {program.name: program for program in run._programs(setup) if program.name in run.SERVING}
    assert {*found} == {*run.SERVING}
    assert {name: program.is_alive() for name, program in found.items()} == dict.fromkeys(run.SERVING, lives)
    found["kube-apiserver"].is_alive()
    # Without etcd it says on other paths that it is not well.
    assert Api.asked == "/livez/ping"
