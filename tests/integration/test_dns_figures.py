"""CoreDNS' own metrics: shown at one address of the node, the same after each change of its configuration."""

import re
import signal
import subprocess
from contextlib import ExitStack, closing
from dataclasses import replace
from ipaddress import IPv4Address

import pytest

from isthmus.clients import prometheus
from isthmus.model.node_network import Leg
from isthmus.monitoring.parts import dns as part
from isthmus.network.dns import records
from tests.support.networks.namespaces import UDP, Namespace, needs_root
from tests.support.servers.etcd import program
from tests.support.wait import wait

pytestmark = needs_root
HERE = IPv4Address("192.0.2.1")
SERVFAIL = 2
# Nobody answers there.
UPSTREAM = IPv4Address("192.0.2.77")


def leg(number):
    return Leg(number, 1000 + number, IPv4Address(f"10.64.{number}.1"), (), HERE, 1450)


def question(name):
    labels = b"".join(bytes([len(label)]) + label.encode() for label in name.split("."))
    return b"\0\7\1\0\0\1\0\0\0\0\0\0" + labels + b"\0\0\1\0\1"


class Dns:
    """CoreDNS in a place of its own, with the configuration that networkd writes."""

    def __init__(self, stack, folder):
        self.place = stack.enter_context(closing(Namespace()))
        self.folder, self.settings = folder, records.DnsSettings("cl", (UPSTREAM,), folder=folder)
        for number in range(1, 9):
            self.place.ip(f"addr add {leg(number).address}/24 dev lo")
            (folder / f"{1000 + number}.hosts").write_text("10.64.1.9 web.alice.cl\n")
        (folder / "all.hosts").write_text("10.64.1.9 web.alice.cl\n")
        self.configure([leg(1)])
        argv = [program("coredns"), "-conf", str(folder / "Corefile")]
        self.running = self.place.do(lambda: subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE))
        stack.callback(self.running.stderr.close)
        stack.callback(self.running.wait)
        stack.callback(self.running.kill)

    def configure(self, legs):
        (self.folder / "Corefile").write_text(records.corefile(legs, self.settings))

    def reload(self, legs):
        self.configure(legs)
        self.running.send_signal(signal.SIGUSR1)

    def ask(self, address, name, timeout_s=5.0):
        with self.place.open(UDP) as asked:
            asked.settimeout(timeout_s)
            asked.sendto(question(name), (str(address), 53))
            return asked.recv(512)[3] & 15

    def figures(self):
        return self.place.do(
            lambda: {
                (sample.name, *sample.labels.values()): sample.value
                for family in part.collect()
                for sample in family.samples
            }
        )


@pytest.fixture
def dns(tmp_path):
    with ExitStack() as stack:
        made = Dns(stack, tmp_path)
        wait(lambda: answers(made), bool, timeout_s=30)
        yield made


def answers(dns):
    try:
        return bool(dns.figures())
    except OSError:
        return False


def test_questions_of_all_legs_are_counted_without_naming_them(dns):
    before = dns.figures().get(("coredns_cache_requests_total",), 0)
    for address in (records.HOST_ADDRESS, leg(1).address):
        for _ in range(3):
            assert dns.ask(address, "web.alice.cl") == 0
    found = dns.figures()
    assert found["coredns_cache_requests_total",] - before == 6
    assert found["coredns_panics_total",] == 0
    assert not any("10.64" in str(labels) for labels in found)


def test_upstream_that_is_away_is_counted(dns):
    broken = ("coredns_forward_healthcheck_broken_total",)
    assert dns.figures()[broken] == 0

    def asked():
        assert dns.ask(leg(1).address, "example.org", 30) == SERVFAIL
        return dns.figures()[broken]

    wait(asked, bool, timeout_s=60)


def test_figures_stay_through_many_changes(dns):
    for number in range(1, 9):
        before = len(raw(dns))
        dns.reload([leg(each) for each in range(1, number + 1)])
        wait(lambda number=number: reached(dns, leg(number).address), bool, timeout_s=20)
        wait(lambda: answers(dns), bool, timeout_s=10)
        # What a leg leaves behind stays small.
        assert len(raw(dns)) - before < 3000
    assert not re.search(r"10\.64\.", "".join(str(key) for key in dns.figures()))


def reached(dns, address):
    try:
        return dns.ask(address, "web.alice.cl", 0.3) == 0
    except TimeoutError:
        return False
    except OSError:
        return False


def raw(dns):
    return dns.place.do(lambda: prometheus.figures(part.URL))


def test_dns_without_its_figures_is_no_answer(dns):
    dns.settings = replace(dns.settings, upstreams=())
    text = (
        (dns.folder / "Corefile").read_text().replace(f"prometheus {records.HOST_ADDRESS}:{records.FIGURES_PORT}", "")
    )
    (dns.folder / "Corefile").write_text(text)
    dns.running.send_signal(signal.SIGUSR1)
    wait(lambda: not answers(dns), bool, timeout_s=20)
