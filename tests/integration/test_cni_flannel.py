"""Flannel's shape as an administrator's list: its own plugin reads subnet.env and delegates to Debian's bridge."""

from contextlib import ExitStack
from pathlib import Path
from shutil import copy

import pytest

from isthmus.model.networks.cni import PLUGINS
from tests.support.networks.cni import CniNodes, job, subnet
from tests.support.networks.namespaces import needs_root
from tests.support.networks.pod_networks import SERVED
from tests.support.servers.etcd import program

pytestmark = needs_root


def plugin_list(own):
    """Return the list that Flannel's manifest has, with folders of a test's."""
    flannel = {
        "type": "flannel",
        "subnetFile": str(own / "subnet.env"),
        "dataDir": str(own / "delegated"),
        "ipam": {"type": "host-local", "dataDir": str(own / "host-local")},
        "delegate": {"bridge": "cni0", "hairpinMode": True, "isDefaultGateway": True, "ipMasq": False},
    }
    portmap = {"type": "portmap", "capabilities": {"portMappings": True}}
    return {"cniVersion": "0.4.0", "name": "site", "plugins": [flannel, portmap]}


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cni")
    plugins = folder / "plugins"
    plugins.mkdir()
    for name in ("bridge", "host-local", "portmap", "loopback"):
        copy(Path(PLUGINS) / name, plugins / name)
    copy(program("cni-flannel"), plugins / "flannel")
    with ExitStack() as stack:
        made = CniNodes(stack, folder, "bridge", plugins)
        for name in ("n1", "n2"):
            gateway = subnet(name)[1]
            lines = ["FLANNEL_NETWORK=10.180.0.0/16", f"FLANNEL_SUBNET={gateway}/24", "FLANNEL_MTU=1450"]
            (folder / name / "subnet.env").write_text("\n".join([*lines, "FLANNEL_IPMASQ=false", ""]))
            made.write(name, plugin_list(folder / name))
        yield made


def test_pods_of_two_nodes_meet_and_go_by_the_plugins_own_memory(world):
    pods = {name: world.made(name, job(1))[1] for name in ("n1", "n2")}
    assert "mtu 1450" in world.pod("n1", 1).ip("link show eth0")
    with world.pod("n2", 1).serve("", SERVED):
        assert world.pod("n1", 1).asks(pods["n2"].address, SERVED) == str(pods["n1"].address)
    assert world.given("n1") == {pods["n1"].address}
    world.write("n1", {**plugin_list(world.folder / "n1"), "name": "other"})
    for name in ("n1", "n2"):
        assert world.run(name).errors == {}
        assert world.given(name) == set()
        assert not [*(world.folder / name / "delegated").glob("*")]


def test_without_a_subnet_a_pod_is_refused_by_name_of_the_file(world):
    path = world.folder / "n2/subnet.env"
    text = path.read_text()
    path.unlink()
    try:
        assert "subnet.env" in world.run("n2", job(2)).errors["isthmus-cni-2"]
    finally:
        path.write_text(text)
        assert world.run("n2").errors == {}
