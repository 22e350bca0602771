"""The controller's settings: read whole, and refused where others could read them."""

import json

import pytest

from isthmus.cloud.power.settings import load
from isthmus.filters.errors import InputError
from tests.unit.cloud.given import VARIABLES

GIVEN = {
    "schema": 1,
    "cluster": {**VARIABLES, "cloud": "mine", "region": ""},
    "identity": "0a0b0c0d",
    "server": "10.20.0.10:7443",
    "resume_timeout_s": 600,
}


def write(folder, given=GIVEN, mode=0o640):
    for name, text in (("settings.json", json.dumps(given)), ("clouds.yaml", "clouds: {}")):
        (folder / name).write_text(text)
        (folder / name).chmod(mode if name == "settings.json" else 0o400)


def test_settings_are_read(tmp_path):
    write(tmp_path)
    found = load(tmp_path)
    assert (found.cloud, found.server, found.resume_timeout_s) == ("mine", "10.20.0.10:7443", 600)
    assert found.cluster.cluster == "hpc"


@pytest.mark.parametrize("mode", [0o644, 0o660])
def test_file_that_others_may_read_or_write_is_refused(tmp_path, mode):
    write(tmp_path, mode=mode)
    with pytest.raises(InputError, match=rf"open to others \(mode 0{mode:o}\); run playbooks/publish.yml"):
        load(tmp_path)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({**GIVEN, "schema": 2}, "has schema 2"),
        ({**GIVEN, "sever": "x"}, "did you mean 'server'"),
        ({key: value for key, value in GIVEN.items() if key != "identity"}, "lacks identity"),
        ({**GIVEN, "cluster": {"cloud": "mine"}}, "is damaged"),
    ],
)
def test_bad_settings_are_refused(tmp_path, given, message):
    write(tmp_path, given)
    with pytest.raises(InputError, match=message):
        load(tmp_path)


def test_settings_that_are_not_there_are_reported(tmp_path):
    with pytest.raises(InputError, match="cannot be read"):
        load(tmp_path)
