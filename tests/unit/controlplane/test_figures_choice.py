"""Whether the kubelet reports figures: the site must ask for them, and the user must not have said no."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from isthmus.cli.commands import up as command
from isthmus.cli.main import main as isthmus
from isthmus.controlplane import main, run, settings
from isthmus.controlplane.commands.user_options import UserOptions
from isthmus.controlplane.layout import Layout
from isthmus.controlplane.settings import Settings
from isthmus.model.network import Driver

SITES = {asks: Settings(Path("/opt/image"), driver=Driver.NONE, figures=asks) for asks in (True, False)}


@pytest.mark.parametrize(
    ("site", "user", "said"), [(True, True, "yes"), (True, False, "no"), (False, True, "no"), (False, False, "no")]
)
def test_kubelet_is_started_with_what_both_want(monkeypatch, tmp_path, site, user, said):
    monkeypatch.setattr(main.sockets, "address_of", lambda _: "192.0.2.1")
    made = main._site(SITES[site], UserOptions(figures=user), tmp_path)
    setup = SimpleNamespace(home=SimpleNamespace(cluster=Layout(tmp_path)), site=made, trial=None)
    assert run._kubelet(setup).environment["ISTHMUS_FIGURES"] == said


def test_site_that_says_nothing_asks_for_none(tmp_path):
    assert settings.parse({"schema": 1, "image": "/opt/image"}).figures is False
    assert settings.parse({"schema": 1, "image": "/opt/image", "figures": True}).figures is True
    assert UserOptions().figures is True


@pytest.mark.parametrize(("site", "is_said"), [(True, True), (False, False)])
def test_first_start_says_what_is_reported(monkeypatch, tmp_path, capsys, site, is_said):
    given = []

    def up(_here, changes, _progress, _timeout_s):
        given.append(changes)
        raise OSError("no Slurm here")

    home = SimpleNamespace(cluster=SimpleNamespace(folder=tmp_path / "none"))
    monkeypatch.setattr(command.user_cluster, "here", lambda: SimpleNamespace(home=home, settings=SITES[site]))
    monkeypatch.setattr(command, "up", up)
    assert isthmus(["up", "--no-figures"]) == 1
    assert given == [{"figures": False}]
    assert ("--no-figures" in capsys.readouterr().err) is is_said
