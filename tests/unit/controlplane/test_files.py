"""Settings, requests and kubeconfigs: what is read, kept and merged."""

import json
import stat
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path

import pytest
import yaml

from isthmus.controlplane import settings
from isthmus.controlplane.commands import user_options
from isthmus.controlplane.errors import ControlPlaneError
from isthmus.controlplane.layout import Layout
from isthmus.controlplane.pki import kubeconfig
from isthmus.controlplane.settings import DataLocation
from isthmus.model.network import Driver

REPORTED = {
    "schema": 1,
    "image": "/opt/image",
    "services": "10.90.0.0/20",
    "driver": "none",
    "kubelet": ["a", "b"],
    "x": 1,
}
THEIRS = {
    "clusters": [{"name": "work", "cluster": {"server": "https://work"}}],
    "users": [{"name": "work", "user": {}}],
    "contexts": [{"name": "work", "context": {}}],
    "current-context": "work",
    "preferences": {"colors": True},
}


@pytest.fixture
def own(tmp_path):
    path = tmp_path / "kubeconfig"
    path.write_text(kubeconfig.of_program("kubelet", "https://10.64.0.2:6443"))
    return path


def test_settings_are_read_and_other_programs_keys_left_alone():
    known = settings.parse(REPORTED)
    assert (known.services, known.driver, known.kubelet) == (IPv4Network("10.90.0.0/20"), Driver.NONE, ("a", "b"))
    assert (known.data, known.data_dir, known.snapshot_s) == (DataLocation.HOME, Path("/var/tmp"), 30)
    reported = settings.parse(REPORTED | {"data": "node", "data_dir": "/scratch", "snapshot_s": 5})
    assert (reported.data, reported.data_dir) == (DataLocation.NODE, Path("/scratch"))
    assert (known.api_service, known.has_network) == (IPv4Address("10.90.0.1"), False)


@pytest.mark.parametrize(
    "text", ["{", "[]", '{"schema": 2}', '{"schema": 1}', '{"schema": 1, "image": "i", "driver": "x"}']
)
def test_wrong_settings_name_file_and_remedy(tmp_path, text):
    path = tmp_path / "kubernetes.json"
    path.write_text(text)
    with pytest.raises(ControlPlaneError, match=f"{path}: .*; an admin writes it again"):
        settings.read(path)


def test_missing_settings_are_reported(tmp_path):
    with pytest.raises(ControlPlaneError, match="no member of layer kubernetes"):
        settings.read(tmp_path / "none.json")


def test_requests_are_kept_and_changed_one_by_one(tmp_path):
    layout = Layout(tmp_path / "cluster")
    assert user_options.read(layout) == user_options.UserOptions()
    user_options.keep(layout, {"partition": "long", "audit": True, "figures": False})
    assert user_options.keep(layout, {"time": "7-0"}) == user_options.UserOptions(
        partition="long", time="7-0", audit=True, figures=False
    )
    assert user_options.read(layout).time == "7-0"


def test_broken_requests_are_reported(tmp_path):
    layout = Layout(tmp_path)
    layout.user_options.write_text("{")
    with pytest.raises(ControlPlaneError, match="remove it"):
        user_options.read(layout)


def test_program_reads_keys_from_files_beside_its_kubeconfig(own):
    (user,) = yaml.safe_load(own.read_text())["users"]
    assert user["user"] == {"client-certificate": "pki/kubelet.crt", "client-key": "pki/kubelet.key"}


def test_merge_keeps_what_is_there(tmp_path, own):
    into = tmp_path / ".kube/config"
    into.parent.mkdir()
    into.write_text(yaml.safe_dump(THEIRS))
    for _ in range(2):
        kubeconfig.merge(into, own)
    merged = yaml.safe_load(into.read_text())
    assert [each["name"] for each in merged["contexts"]] == ["work", "isthmus"]
    assert (merged["current-context"], merged["preferences"]) == ("isthmus", {"colors": True})
    assert stat.S_IMODE(into.stat().st_mode) == 0o600


def test_merge_into_nothing_makes_it(tmp_path, own):
    kubeconfig.merge(tmp_path / "new/config", own)
    assert json.loads(json.dumps(yaml.safe_load((tmp_path / "new/config").read_text())))["current-context"] == "isthmus"


@pytest.mark.parametrize("text", ["[1]", "a: [", "clusters: [1]"])
def test_merge_into_something_else_changes_nothing(tmp_path, own, text):
    into = tmp_path / "config"
    into.write_text(text)
    with pytest.raises(ControlPlaneError, match="repair it or move it away"):
        kubeconfig.merge(into, own)
    assert into.read_text() == text
