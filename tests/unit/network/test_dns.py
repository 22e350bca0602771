"""What CoreDNS knows of pods' names."""

from dataclasses import replace
from ipaddress import IPv4Address, IPv4Network

import pytest

from isthmus.model.network import Attachment, Driver, Job, State, User
from isthmus.model.node_network import Leg
from isthmus.network.dns import records as dns

ALICE = User(1001, "alice", 4096, (IPv4Network("10.64.0.0/24"),), reserved={"web": IPv4Address("10.64.0.200")})
SETTINGS = dns.DnsSettings("cl", (IPv4Address("192.0.2.53"),), ("example.org",))


def job(number, name="run", uid=1001, driver=Driver.PRIVATE, pods=1):
    nodes = tuple(f"c{index}" for index in range(pods))
    addresses = tuple(IPv4Address("10.64.0.10") + 10 * number + index for index in range(pods))
    return Job(number, uid, name, driver, nodes, addresses)


def lines(*jobs):
    return dns.hosts(ALICE.name, jobs, ALICE.reserved, State().addresses, "cl").splitlines()


def test_job_has_names_of_its_pods_and_of_all():
    assert lines(job(1, pods=2))[1:] == [
        "10.64.0.20 pod0.1.alice.cl pod0.run.alice.cl 1.alice.cl run.alice.cl",
        "10.64.0.21 pod1.1.alice.cl pod1.run.alice.cl 1.alice.cl run.alice.cl",
    ]


def test_job_name_is_the_newest_jobs():
    assert lines(job(2), job(1))[1:] == [
        "10.64.0.20 pod0.1.alice.cl 1.alice.cl",
        "10.64.0.30 pod0.2.alice.cl pod0.run.alice.cl 2.alice.cl run.alice.cl",
    ]


def test_reservation_wins_over_a_jobs_name():
    assert lines(job(1, "WEB")) == ["10.64.0.200 web.alice.cl", "10.64.0.20 pod0.1.alice.cl 1.alice.cl"]


@pytest.mark.parametrize("name", ["7", "", "--", "\n", "*"])
def test_name_that_is_no_label_is_left_out(name):
    assert lines(job(1, name))[1:] == ["10.64.0.20 pod0.1.alice.cl 1.alice.cl"]


def test_name_cannot_add_a_line():
    assert lines(job(1, "a\n10.0.0.1 evil"))[1:] == [
        "10.64.0.20 pod0.1.alice.cl pod0.a-10-0-0-1-evil.alice.cl 1.alice.cl a-10-0-0-1-evil.alice.cl"
    ]


def test_pod_without_an_address_has_no_name():
    reported = {(2, "c1"): Attachment(2, "c1", IPv4Address("10.128.1.2"))}
    shared = replace(job(2, driver=Driver.FLANNEL, pods=2), addresses=())
    named = dns.hosts("alice", [shared], {}, State(attachments=reported).addresses, "cl")
    assert named == "10.128.1.2 pod1.2.alice.cl pod1.run.alice.cl 2.alice.cl run.alice.cl\n"


@pytest.mark.parametrize(
    ("block", "zones"),
    [
        ("10.64.3.0/24", ("3.64.10.in-addr.arpa",)),
        ("10.64.2.0/23", ("2.64.10.in-addr.arpa", "3.64.10.in-addr.arpa")),
        ("10.64.0.128/25", ("0.64.10.in-addr.arpa",)),
        ("10.64.0.0/16", ("64.10.in-addr.arpa",)),
    ],
)
def test_reverse_zones_end_at_bytes(block, zones):
    assert dns.reverse_zones([IPv4Network(block)]) == zones


def test_corefile_has_a_block_per_leg():
    legs = [
        Leg(number, 1000 + number, IPv4Address(f"10.64.{number}.1"), (), IPv4Address("10.0.0.1"), 1450)
        for number in (2, 1)
    ]
    reported = dns.corefile(legs, SETTINGS)
    bound = [line.split()[1] for line in reported.splitlines() if "bind" in line]
    assert bound == ["127.0.0.153", "10.64.1.1", "10.64.2.1"]
    assert "hosts /run/isthmus/dns/1001.hosts cl" in reported
    assert "forward . 192.0.2.53 {\n        policy sequential\n" in reported


def test_bridge_of_flannel_has_one_block_with_the_names_of_its_network():
    settings = replace(SETTINGS, shared={Driver.FLANNEL: IPv4Network("10.128.0.0/16")})
    reported = dns.corefile([], settings, [(Driver.FLANNEL, IPv4Address("10.128.1.1"))] * 2)
    assert reported.count("bind 10.128.1.1\n") == 1
    assert "hosts /run/isthmus/dns/flannel.hosts cl 128.10.in-addr.arpa {" in reported


def test_corefile_without_upstreams_forwards_nothing():
    assert "forward" not in dns.corefile([], dns.DnsSettings("cl"))


def test_host_whose_resolver_knows_other_servers_gets_no_other_names():
    leg = Leg(1, 1001, IPv4Address("10.64.0.1"), (), IPv4Address("10.0.0.1"), 1450)
    here, legs = dns.corefile([leg], replace(SETTINGS, forwards_hosts=False)).split(".:53 {")
    assert here.startswith("cl:53 {")
    assert "forward" not in here
    assert "forward . 192.0.2.53" in legs


def test_resolv_conf_searches_job_user_and_the_admins_list():
    reported = dns.resolv_conf(job(7), "alice", IPv4Address("10.64.0.1"), SETTINGS)
    assert reported == "nameserver 10.64.0.1\nsearch 7.alice.cl alice.cl example.org\n"


def test_errors_are_counted_and_not_logged_one_by_one():
    assert dns.corefile([], SETTINGS).count("consolidate") == 1


def test_questions_that_wait_for_upstreams_are_bounded():
    text = dns.corefile([], SETTINGS)
    bound = f"        policy sequential\n        max_concurrent {dns.FORWARDED_MAX}\n    }}\n"
    assert f"forward . 192.0.2.53 {{\n{bound}" in text
