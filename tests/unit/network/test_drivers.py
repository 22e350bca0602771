"""What a job's steps know of its network: nothing before all of it is there."""

from ipaddress import IPv4Address

import pytest

from isthmus.model.network import Attachment, Driver, Job, Node, State, User
from isthmus.network.api.protocol import RequestError
from isthmus.network.dns.names import NodeNames
from isthmus.network.dns.records import DnsSettings
from isthmus.network.drivers.flannel.converge import FlannelConverger
from isthmus.network.drivers.flannel.network import FlannelNetwork
from isthmus.network.drivers.private.network import PrivateNetwork
from isthmus.network.node.converge import Converger
from isthmus.network.state.snapshot import Snapshot
from isthmus.network.state.view import View
from tests.support.fakes.kernel import FakeAttachments, FakeFollower, FakeKernel

ADDRESS = IPv4Address("10.128.1.8")
STATE = State(
    {"c1": Node("c1", IPv4Address("10.0.0.1"))},
    {1001: User(1001, "alice", 4096)},
    {7: Job(7, 1001, "run", Driver.FLANNEL, ("c1",), ())},
    attachments={(7, "c1"): Attachment(7, "c1", ADDRESS)},
)


class Bed:
    """Both networks of a node without a kernel."""

    def __init__(self, state=STATE, **timing):
        self.view, self.pods = View(Snapshot(state)), FakeAttachments()
        self.filter, names = FakeFollower([], "filter"), NodeNames(DnsSettings("cl"), lambda: None)
        self.shared = FlannelConverger("c1", self.pods, lambda each: None)
        pods = lambda: self.shared.last.pods  # noqa: E731
        self.converger = Converger("c1", FakeKernel(), self.filter, FakeFollower([], "names"), shared=pods)
        self.flannel = FlannelNetwork("c1", self.view, self.shared, self.converger, names, **timing)
        self.private = PrivateNetwork(self.view, self.converger, names)


@pytest.fixture
def bed():
    return Bed()


def test_steps_are_reported_namespace_bridge_and_names(bed):
    bed.flannel.make(7)
    assert bed.flannel.ready(7) == {
        "netns": "/run/netns/isthmus-flannel-7",
        "leg": "iflannel",
        "address": str(ADDRESS),
        "resolv_conf": "/run/isthmus/dns/7.resolv",
    }
    assert (list(bed.flannel.owners()), bed.flannel.errors()) == ([1001], {})
    assert bed.private.ready(7) is None


def test_pod_is_not_ready_before_rules_and_names_follow_it(bed):
    bed.shared.run(bed.view.state)
    assert bed.flannel.ready(7) is None
    bed.converger.run(bed.view.state)
    assert bed.flannel.ready(7)


def test_pod_is_not_ready_without_its_rules(bed):
    bed.filter.error = OSError("nft: no")
    bed.flannel.make(7)
    assert bed.flannel.ready(7) is None


def test_pod_that_failed_is_not_ready_and_reported(bed):
    bed.pods.failing = {7}
    bed.flannel.make(7)
    assert bed.flannel.ready(7) is None
    assert bed.flannel.errors() == {"isthmus-flannel-7": "plugin: no"}


def test_address_that_etcd_does_not_show_is_an_error():
    bed = Bed(State(STATE.nodes, STATE.users, STATE.jobs), echo_s=0.01)
    with pytest.raises(RequestError, match="etcd took the pod's address and does not show it"):
        bed.flannel.make(7)
