"""What the kubelet is sent."""

import json

import pytest

from isthmus.kubelet.settings import SettingsError, read
from isthmus.model.network import Driver

ENVIRONMENT = {
    "ISTHMUS_CLUSTER_DIR": "/home/alice/.isthmus/cluster",
    "ISTHMUS_NODE_NAME": "slurm",
    "ISTHMUS_ADDRESS": "10.64.0.2",
    "ISTHMUS_CHANNEL_PORT": "20260",
    "ISTHMUS_KUBERNETES": "1.36.9",
}
FILE = {
    "schema": 1,
    "driver": "private",
    "versions": {"kube-apiserver": "1.37.2"},
    "kubelet": ["/opt/x/bin/python", "-I"],
}


def written(folder, **changes):
    path = folder / "kubernetes.json"
    path.write_text(json.dumps({**FILE, **changes}))
    return path


def test_folders_follow_the_cluster(tmp_path):
    reported = read(ENVIRONMENT, written(tmp_path, pods={"memory_mib": 64, "account": "physics"}))
    assert (reported.port, reported.channel_port, reported.version) == (10250, 20260, "1.36.9")
    assert str(reported.folder) == "/home/alice/.isthmus"
    assert (reported.pods.home, reported.pods.pods) == ("/home/alice", "/home/alice/.isthmus/pods")
    assert (reported.pods.memory_mib, reported.pods.account, reported.pods.python) == (
        64,
        "physics",
        "/opt/x/bin/python",
    )
    assert reported.pods.dns == "10.64.0.2"


def test_kubelet_is_as_old_as_its_control_plane(tmp_path):
    """One of before there were several versions says nothing; the site's newest is not its."""
    silent = {name: value for name, value in ENVIRONMENT.items() if name != "ISTHMUS_KUBERNETES"}
    assert read(silent, written(tmp_path)).version == "1.36.3"


def test_source_of_jobs_may_be_there(tmp_path):
    source = read(ENVIRONMENT, written(tmp_path, jobs={"address": "10.0.0.1", "port": 7444})).source
    assert (source.address, source.port) == ("10.0.0.1", 7444)
    assert read(ENVIRONMENT, written(tmp_path, jobs={})).source is None
    with pytest.raises(SettingsError):
        read(ENVIRONMENT, written(tmp_path, jobs={"address": "10.0.0.1"}))


def test_pods_without_a_network_ask_their_nodes_dns(tmp_path):
    reported = read(ENVIRONMENT, written(tmp_path, driver="none"))
    assert (reported.pods.driver, reported.pods.dns) == (Driver.NONE, "")


@pytest.mark.parametrize(
    "changes", [{"schema": 2}, {"driver": "other"}, {"pods": {"colour": 1}}, {"pods": 3}], ids=lambda one: str(one)
)
def test_wrong_file_is_refused_with_the_remedy(tmp_path, changes):
    with pytest.raises(SettingsError, match=r"kubernetes\.json: .*; an admin writes it again"):
        read(ENVIRONMENT, written(tmp_path, **changes))


def test_missing_file_and_variable_are_reported(tmp_path):
    with pytest.raises(SettingsError, match="No such file"):
        read(ENVIRONMENT, tmp_path / "none")
    with pytest.raises(SettingsError, match=r"ISTHMUS_ADDRESS.*isthmus up"):
        read({key: text for key, text in ENVIRONMENT.items() if key != "ISTHMUS_ADDRESS"}, written(tmp_path))


@pytest.mark.parametrize(
    ("site", "user", "reports"), [(True, "yes", True), (True, "no", False), (False, "yes", False), (True, None, False)]
)
def test_figures_are_reported_where_site_and_user_want_it(tmp_path, site, user, reports):
    environment = ENVIRONMENT | ({"ISTHMUS_FIGURES": user} if user else {})
    assert read(environment, written(tmp_path, figures=site)).figures is reports
