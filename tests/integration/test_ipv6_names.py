"""CoreDNS answers for pods with both addresses, and in reverse, with the configuration that networkd writes."""

import subprocess
from contextlib import ExitStack, closing, suppress
from ipaddress import IPv4Address, IPv4Network, IPv6Network

import pytest

from isthmus.model.network import Driver, Job, State
from isthmus.model.networks.ipv6 import beside
from isthmus.model.node_network import Leg
from isthmus.network.dns import records
from tests.support.networks.namespaces import UDP, Namespace, needs_root
from tests.support.servers.etcd import program
from tests.support.wait import wait

pytestmark = needs_root
SIX = IPv6Network("fd12:3456:789a::/96")
BLOCK = IPv4Network("10.64.2.0/23")
LEG = Leg(4096, 1000, BLOCK[1], (BLOCK,), IPv4Address("192.0.2.1"), 1450)
JOB = Job(7, 1000, "run", Driver.PRIVATE, ("c1",), (BLOCK[400],))
# RFC 1035, 3.2.2, and RFC 3596, 2.1.
A, PTR, AAAA = 1, 12, 28
NAME = "pod0.7.alice.cl"


def question(name, kind):
    labels = b"".join(bytes([len(label)]) + label.encode() for label in name.split("."))
    return b"\0\7\1\0\0\1\0\0\0\0\0\0" + labels + b"\0\0" + bytes([kind]) + b"\0\1"


def configure(folder):
    """Write what networkd writes."""
    settings = records.DnsSettings("cl", (IPv4Address("192.0.2.77"),), folder=folder, ipv6=SIX)
    names = records.hosts("alice", [JOB], {"web": BLOCK[9]}, State().addresses, "cl", SIX)
    for path in (settings.hosts(LEG.uid), settings.all_hosts):
        path.write_text(names)
    (folder / "Corefile").write_text(records.corefile([LEG], settings))


@pytest.fixture(scope="module")
def ask(tmp_path_factory):
    folder = tmp_path_factory.mktemp("dns")
    configure(folder)
    with ExitStack() as stack:
        place = stack.enter_context(closing(Namespace()))
        place.ip(f"addr add {LEG.address}/24 dev lo")
        argv = [program("coredns"), "-conf", str(folder / "Corefile")]
        silent = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        running = place.do(lambda: subprocess.Popen(argv, **silent))
        stack.callback(running.wait)
        stack.callback(running.kill)

        def answer(name, kind):
            with suppress(OSError), place.open(UDP) as asked:
                asked.settimeout(1)
                asked.sendto(question(name, kind), (str(LEG.address), 53))
                return asked.recv(512)
            return b""

        wait(lambda: answer(NAME, A), bool, timeout_s=30)
        yield answer


@pytest.mark.parametrize(
    ("name", "address"), [(NAME, BLOCK[400]), ("run.alice.cl", BLOCK[400]), ("web.alice.cl", BLOCK[9])]
)
def test_name_has_both_addresses(ask, name, address):
    assert address.packed in ask(name, A)
    assert beside(SIX, address).packed in ask(name, AAAA)


@pytest.mark.parametrize("address", [BLOCK[400], beside(SIX, BLOCK[400])])
def test_address_has_its_name(ask, address):
    assert b"\4pod0" in ask(address.reverse_pointer, PTR)
