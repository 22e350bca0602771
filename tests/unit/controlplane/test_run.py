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

    answer, asked, takes_s = None, None, 0.0

    def __init__(self, access, timeout_s=0.0):
        assert 0 < timeout_s < 20
        self._timeout_s = timeout_s

    def text(self, path):
        Api.asked = path
        if Api.takes_s > self._timeout_s:
            raise KubeError("no answer in time")
        if Api.answer:
            raise Api.answer
        return "ok"


def serving(monkeypatch, tmp_path):
    """Return the programs that serve, by name."""
    monkeypatch.setattr(run, "ApiServer", Api)
    site = Site(Settings(Path("/opt/image")), Layout(Path("/cluster")), IPv4Address("10.64.0.3"))
    setup = run.Run("1", "alice", Home(tmp_path), site, lambda name, words, memory: [name], ())
    return {program.name: program for program in run._programs(setup) if program.name in run.SERVING}


def test_program_that_is_slow_lives(monkeypatch, tmp_path):
    """As kubeadm has it; a restart makes a busy node no faster."""
    monkeypatch.setattr(Api, "takes_s", 14.0)
    found = serving(monkeypatch, tmp_path)
    assert {name: program.is_alive() for name, program in found.items()} == dict.fromkeys(run.SERVING, True)
    monkeypatch.setattr(Api, "takes_s", 16.0)
    assert not any(program.is_alive() for program in found.values())


@pytest.mark.parametrize(
    ("answer", "lives"), [(None, True), (KubeError("not yet", 500), True), (KubeError("no answer"), False)]
)
def test_each_program_is_asked_whether_it_lives(monkeypatch, tmp_path, answer, lives):
    """What it says is another matter: one that waits for etcd would be restarted for ever."""
    monkeypatch.setattr(Api, "answer", answer)
    found = serving(monkeypatch, tmp_path)
    assert {*found} == {*run.SERVING}
    assert {name: program.is_alive() for name, program in found.items()} == dict.fromkeys(run.SERVING, lives)
    found["kube-apiserver"].is_alive()
    # Without etcd it says on other paths that it is not well.
    assert Api.asked == "/livez/ping"
