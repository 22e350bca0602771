"""What becomes of pods of an administrator's plugins: restarts, changed and broken lists, crashes, lies and twins."""

import json
import sys
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path
from shutil import copy

import pytest

from isthmus.clients.netlink import namespaces
from isthmus.model.network import Attachment
from isthmus.model.networks.cni import PLUGINS
from isthmus.network.dns.names import NodeNames
from isthmus.network.dns.records import DnsSettings
from isthmus.network.drivers.attached_network import AttachedNetwork
from isthmus.network.node.converge import Converger
from isthmus.network.state.snapshot import Snapshot
from isthmus.network.state.view import View
from tests.support.fakes.kernel import FakeFollower, FakeKernel
from tests.support.networks.cni import CniNodes, job, plugin_list
from tests.support.networks.namespaces import needs_root
from tests.support.networks.pod_networks import BOB

pytestmark = needs_root
# Answers ADD as a file beside it says, and passes everything on to the real one otherwise.
LIAR = f"""#!{sys.executable} -IS
import os, pathlib, sys
me = pathlib.Path(sys.argv[0])
answer = me.parent / "lie"
if os.environ["CNI_COMMAND"] == "ADD" and answer.exists():
    print(answer.read_text())
    sys.exit(0)
if os.environ["CNI_COMMAND"] == "ADD":
    print(__import__("json").dumps(__import__("json").load(sys.stdin)["prevResult"]))
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Machines, whose plugins a test may change: copies, and one that lies."""
    folder = tmp_path_factory.mktemp("cni")
    plugins = folder / "plugins"
    plugins.mkdir()
    for name in ("bridge", "host-local", "portmap", "loopback"):
        copy(Path(PLUGINS) / name, plugins / name)
    (plugins / "liar").write_text(LIAR)
    (plugins / "liar").chmod(0o755)
    with ExitStack() as stack:
        yield CniNodes(stack, folder, "bridge", plugins)


@pytest.fixture
def world(made):
    made.state = replace(made.state, attachments={})
    made.write("n1", plugin_list("bridge", "n1", made.folder))
    yield made
    made.write("n1", plugin_list("bridge", "n1", made.folder))
    (made.plugins / "lie").unlink(missing_ok=True)
    assert made.run("n1").errors == {}
    assert made.given("n1") == set()
    assert not [*(made.folder / "n1/records").glob("*")]
    assert "veth" not in made.nodes.places["n1"].ip("-o link")


def lying(world, answer):
    """Have the last plugin of the list answer something of its own."""
    document = plugin_list("bridge", "n1", world.folder)
    world.write("n1", {**document, "plugins": [*document["plugins"], {"type": "liar"}]})
    (world.plugins / "lie").write_text(answer)


def test_next_daemon_finds_the_pod_and_calls_no_plugin(world):
    first = world.made("n1", job(1))
    world.write("n1", {"cniVersion": "1.0.0", "name": "other", "plugins": []})
    assert world.made("n1", job(1)) == first


def test_pod_is_taken_away_by_the_list_that_made_it_after_restart_and_change(world):
    pod = world.made("n1", job(1))[1]
    assert world.given("n1") == {pod.address}
    changed = plugin_list("bridge", "n1", world.folder, name="other")
    changed["plugins"][0]["ipam"]["dataDir"] = str(world.folder / "elsewhere")
    world.write("n1", changed)
    assert world.run("n1").errors == {}
    assert world.given("n1") == set()


def test_pod_is_taken_away_although_the_list_is_broken_now(world):
    world.made("n1", job(1))
    (world.folder / "n1/10-site.conflist").write_text("{")
    assert world.run("n1").errors == {}
    assert world.given("n1") == set()


def test_pod_of_before_a_boot_is_given_back(world):
    """Namespaces end with the machine; what host-local remembers, and the record, do not."""
    world.made("n1", job(1))
    world.nodes.places["n1"].do(namespaces.remove, Path("/run/netns/isthmus-cni-1"))
    assert world.run("n1").errors == {}
    assert world.given("n1") == set()


def test_crash_between_plugins_and_record_leaves_no_address(world):
    """As it is when the daemon ends behind ADD: the list is noted, the answer is not; and then the list changes."""
    world.made("n1", job(1))
    path = world.folder / "n1/records/1.json"
    noted = json.loads(path.read_text())
    path.write_text(json.dumps({**noted, "result": {}, "place": {}}))
    world.write("n1", plugin_list("bridge", "n1", world.folder, name="other"))
    assert world.run("n1").errors == {}
    assert world.given("n1") == set()


def test_half_made_pod_is_connected_again_in_its_namespace(world):
    first = world.made("n1", job(1))[1]
    before = world.nodes.places["n1"].do(lambda: Path("/run/netns/isthmus-cni-1").stat().st_ino)
    (world.folder / "n1/records/1.json").write_text("{")
    again = world.made("n1", job(1))[1]
    assert world.nodes.places["n1"].do(lambda: Path("/run/netns/isthmus-cni-1").stat().st_ino) == before
    assert world.given("n1") == {again.address}
    assert str(again.address) in world.pod("n1", 1).ip("-4 -o addr show eth0")
    assert first.uid == again.uid


def test_steps_hear_of_the_pods_namespace_and_of_the_nodes_interface(world):
    daemon, follower = world.daemon("n1"), FakeFollower([], "follower")
    pod = world.run("n1", job(1), daemon=daemon).pods[1]
    view = View(Snapshot(world.state))
    converger = Converger("n1", FakeKernel(), follower, follower, shared=lambda: daemon.last.pods)
    network = AttachedNetwork("n1", view, daemon, converger, NodeNames(DnsSettings("cl"), lambda: None))
    assert network.ready(1) is None
    converger.run(view.state)
    said = network.ready(1)
    assert (said["netns"], said["leg"]) == ("/run/netns/isthmus-cni-1", "cni0")
    assert said["address"] == str(pod.address)


def test_job_of_another_user_with_the_number_has_another_pod(world):
    world.made("n1", job(1))
    assert world.made("n1", job(1, BOB))[1].uid == BOB


def test_damaged_pod_is_noticed_by_check_and_mended(world):
    world.made("n1", job(1))
    world.pod("n1", 1).ip("link delete eth0")
    now = [0.0]
    daemon = world.daemon("n1")
    daemon._clock = lambda: now[0]
    daemon._checked_s = -1e9
    pod = world.run("n1", job(1), daemon=daemon).pods[1]
    assert str(pod.address) in world.pod("n1", 1).ip("-4 -o addr show eth0")


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ("not JSON", "answered no JSON object"),
        ("x" * 2_000_000, "wrote more than a plugin has to say"),
        ('{"ips": [{"address": "192.0.2.9/24", "gateway": "10.180.1.1"}]}', "no address of network_cni_range"),
        ('{"ips": [{"address": "10.180.1.99/24", "gateway": "10.180.1.1"}]}', "has lost its eth0, or the address"),
    ],
)
def test_lie_of_a_plugin_is_refused_and_leaves_nothing(world, answer, said):
    lying(world, answer)
    outcome = world.run("n1", job(1))
    assert outcome.pods == {}
    assert said in outcome.errors["isthmus-cni-1"]
    assert world.given("n1") == set()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda folder: (folder / "10-site.conflist").unlink(), "write the list there"),
        (lambda folder: (folder / "10-site.conflist").chmod(0o666), "run chmod go-w"),
        (lambda folder: folder.chmod(0o777), "run chmod go-w"),
    ],
)
def test_list_that_others_could_write_is_refused_before_anything_is_made(world, change, said):
    folder = world.folder / "n1"
    try:
        change(folder)
        assert said in world.run("n1", job(1)).errors["isthmus-cni-1"]
        with suppress(FileNotFoundError):
            assert not [*Path("/run/netns").glob("isthmus-cni-1")]
        assert not [*(folder / "records").glob("*")]
    finally:
        folder.chmod(0o755)
        world.write("n1", plugin_list("bridge", "n1", world.folder))


def test_address_that_another_node_gave_too_is_refused(world):
    other = Attachment(2, "n2", plugin_address(world))
    world.state = replace(world.state, attachments={(2, "n2"): other})
    outcome = world.run("n1", job(1, nodes=("n1",)), job(2, nodes=("n2",)))
    assert "is also the pod's of job 2 on n2; give each node a range" in outcome.errors["isthmus-cni-1"]
    assert (1, "n1") not in world.state.attachments


def plugin_address(world):
    """Return the address that host-local gives next on n1."""
    return world.made("n1", job(9))[9].address + 1
