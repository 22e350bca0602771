"""The site's own plugins in the daemon: settings, rules, and pods whose address another node gave away, too."""

import re
from dataclasses import replace
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path

import pytest

from isthmus.clients.cni import admin
from isthmus.clients.cni.lists import AdminList
from isthmus.clients.cni.results import Expected
from isthmus.model.network import Attachment, Driver, Job, Node, State, User
from isthmus.model.node_network import NodePlan, SharedPod
from isthmus.network.dns.names import NodeNames
from isthmus.network.dns.records import DnsSettings
from isthmus.network.drivers.cni.definition import CniSettings, read
from isthmus.network.drivers.cni.network import CniConverger, collect, connect
from isthmus.network.drivers.cni.rules import Cni
from isthmus.network.drivers.node import NodeContext
from isthmus.network.node import rules
from isthmus.network.node.converge import Converger
from isthmus.network.state.snapshot import Snapshot
from isthmus.network.state.view import View
from tests.support.fakes.kernel import FakeAttachments, FakeFollower, FakeKernel

GIVEN = {
    "range": "10.180.0.0/16",
    "interface": "veth*",
    "gateway": "",
    "folder": "/etc/cni/net.d",
    "list": "10-site.conflist",
    "plugins": "/usr/lib/cni",
}
NETWORK = Cni(IPv4Network("10.180.0.0/16"), "veth*")
SETTINGS = rules.Settings(IPv4Network("10.64.0.0/11"), shared=(NETWORK,))
POD = SharedPod(Driver.CNI, 7, 1001, IPv4Address("10.180.1.2"), IPv4Address("10.180.1.1"), "veth1", "veth1")
STATE = State(
    {name: Node(name, IPv4Address(f"192.0.2.{number}")) for number, name in enumerate(("c1", "c2"), 1)},
    {1001: User(1001, "alice", 4096)},
    {job: Job(job, 1001, "run", Driver.CNI, (node,), ()) for job, node in ((7, "c1"), (8, "c2"))},
)


def test_settings_are_read():
    files = Path("/etc/cni/net.d"), "10-site.conflist", Path("/usr/lib/cni")
    assert read(GIVEN) == CniSettings(NETWORK, *files)
    assert read({**GIVEN, "gateway": "169.254.1.1"}).gateway == IPv4Address("169.254.1.1")
    assert read(GIVEN).records.is_relative_to("/var/lib")


@pytest.mark.parametrize("changes", [{"interface": 'cni0" drop'}, {"range": "x"}, {"gateway": "10.0.0.0/8"}])
def test_settings_that_cannot_be_are_refused(changes):
    with pytest.raises(ValueError, match=r"is no|Expected 4|Unexpected"):
        read({**GIVEN, **changes})


def test_what_comes_from_an_end_has_the_address_of_the_pod_behind_it():
    elements = rules.elements(NodePlan(shared={7: POD}), STATE, "c1", SETTINGS)
    assert elements["cni_pods"] == {'"veth1" . 10.180.1.2'}
    assert elements["legs"] == {'"veth1" . 10.180.1.1'}
    chains = rules.tables(SETTINGS)["inet"]
    for name in ("from_cni", "from_cni_pods"):
        assert chains[name][1] == "iifname . ip saddr != @cni_pods drop"
    assert 'iifname "veth*" goto from_cni' in chains["cni_input"]
    assert chains["cni_forward"][1] == 'iifname "veth*" goto from_cni_pods'


def test_egress_of_a_user_is_by_the_addresses_of_his_pods():
    named = replace(SETTINGS, egress=(rules.Egress(rules.Action.DENY, uid=1001),))
    elements = rules.elements(NodePlan(shared={7: POD}), STATE, "c1", named)
    assert elements["cni_user_1001"] == {"10.180.1.2"}
    assert any(line.startswith("ip saddr @cni_user_1001 ") for line in rules.tables(named)["inet"]["from_cni_pods"])


def test_every_rule_that_refuses_is_counted():
    lines = [line for line in rules.base(SETTINGS).splitlines() if re.search(r"cni|10\.180\.", line)]
    refusing = [line for line in lines if line.endswith("drop")]
    assert len(refusing) >= 7
    assert all('counter name "refused_' in line for line in refusing)


def with_addresses(*attachments):
    return replace(STATE, attachments={(each.job, each.node): each for each in attachments})


def test_address_that_another_node_gave_is_reported_and_not_published():
    reported = []
    converger = CniConverger("c1", FakeAttachments(), reported.append)
    address = FakeAttachments().add(7, 1001).address
    outcome = converger.run(lambda: with_addresses(Attachment(8, "c2", address)))
    assert "is also the pod's of job 8 on c2; give each node a range of its own" in outcome.errors["isthmus-cni-7"]
    assert reported == []
    outcome = converger.run(lambda: with_addresses(Attachment(8, "c2", address + 1)))
    assert (outcome.errors, reported) == ({}, [Attachment(7, "c1", address)])


def test_addresses_of_other_networks_and_of_ended_jobs_are_not_compared():
    reported = []
    address = FakeAttachments().add(7, 1001).address
    other = replace(STATE.jobs[8], driver=Driver.FLANNEL)
    state = with_addresses(Attachment(8, "c2", address), Attachment(9, "c2", address))
    state = replace(state, jobs={7: STATE.jobs[7], 8: other})
    assert CniConverger("c1", FakeAttachments(), reported.append).run(lambda: state).errors == {}
    assert [each.job for each in reported] == [7]


def test_job_hears_why_the_list_cannot_be_used_and_other_networks_do_not(tmp_path):
    follower, view, names = FakeFollower([], "x"), View(Snapshot(STATE)), NodeNames(DnsSettings("cl"), lambda: None)
    context = NodeContext("c1", None, view, Converger("c1", FakeKernel(), follower, follower), names)
    network = connect(context, CniSettings(NETWORK, tmp_path, "a.conflist", tmp_path, None, tmp_path / "records"))
    network.make(7)
    assert network.errors().keys() == {"isthmus-cni-7"}
    assert network.ready(7) is None
    assert follower.calls == []


def test_list_that_cannot_be_used_leaves_the_daemon_alone(tmp_path, caplog):
    site = admin.Site(AdminList(tmp_path / "none", "a.conflist", tmp_path), Expected(NETWORK.range, "cni0"))
    collect(admin.attachments(site, tmp_path / "records"))
    assert "jobs with network cni may fail" in caplog.text
    assert not [*tmp_path.iterdir()]
