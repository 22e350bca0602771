"""A user's place with a Slurm and a network that are not there."""

import json
from pathlib import Path

import pytest

from isthmus.controlplane.commands.context import Context, Timing
from isthmus.controlplane.layout import Home
from isthmus.controlplane.network import NetworkError
from isthmus.controlplane.settings import Settings
from tests.support.fakes.slurm import FakeSlurm


class FakeNetwork:
    """Remembers reservations; refuses when asked to."""

    def __init__(self):
        self.reserved, self.joined, self.refusal = set(), 0, ""

    def _heard(self):
        if self.refusal:
            raise NetworkError(self.refusal)

    def reserve(self, name):
        self._heard()
        self.reserved.add(name)
        return "10.64.0.2"

    def unreserve(self, name):
        self._heard()
        self.reserved.remove(name)

    def join(self):
        self._heard()
        self.joined += 1


@pytest.fixture
def slurm(monkeypatch):
    made = FakeSlurm()
    made.install(monkeypatch)
    return made


@pytest.fixture
def context(tmp_path):
    (tmp_path / ".isthmus").mkdir(mode=0o700)
    return Context(
        Home(tmp_path), Settings(Path("/opt/image")), FakeNetwork(), Path("/opt/python"), Timing(up_s=0, down_s=0)
    )


@pytest.fixture
def ready(context):
    """Let a job say that it is ready, and how its programs are."""

    def write(job, **programs):
        files = context.home.cluster
        files.logs.mkdir(parents=True, exist_ok=True)
        files.state.write_text(json.dumps({"schema": 1, "job": job.id, "server": "https://10.64.0.2:6443"}))
        reported = {name: {"state": state, "restarts": 0, "said": "a word"} for name, state in programs.items()}
        files.programs.write_text(json.dumps({"schema": 1, "programs": reported}))

    return write
