"""The text of a pod's Services: what is in it, and what never is."""

import re
from ipaddress import IPv4Address, IPv4Network

from hypothesis import given
from hypothesis import strategies as some

from isthmus.model.services import Answering, Endpoint, ServicePort, Transport
from isthmus.network.api.fields import FieldError
from isthmus.network.services.rows import read
from isthmus.network.services.rules import has_affinity, set_name, text
from tests.support.pods.services import answering, place

SERVICES = IPv4Network("10.96.0.0/16")
WEB, ONE, TWO = place(), "10.64.0.3:8080", "10.64.0.4:81"
HEAD = ["table ip isthmus_services", "delete table ip isthmus_services", "table ip isthmus_services {"]
# The forms of a line, with any numbers.
IP = r"\d+\.\d+\.\d+\.\d+"
NAME = r"service\d+(_\d+)?"
PLACE = rf"{IP} \. (tcp|udp|sctp) \. \d+ : goto {NAME}"
LEFT = rf"{IP} timeout \d+s expires \d+s"
CLIENTS = rf"clients_{IP}_(tcp|udp|sctp)_\d+_{IP}_\d+"
DNAT = r"meta l4proto (tcp|udp|sctp) dnat"
LINES = re.compile(
    "|".join(
        [
            rf"(chain|set|map) ({NAME}|{CLIENTS}|services|translate|refuse) {{",
            r"}",
            r"type (nat hook output priority -100|filter hook output priority filter); policy accept",
            r"type ipv4_addr( \. inet_proto \. inet_service : verdict)?",
            r"flags dynamic,timeout",
            r"(size|timeout) \d+s?",
            rf"elements = {{ ({PLACE}(, {PLACE})*|{LEFT}(, {LEFT})*) }}",
            rf"update @{CLIENTS} {{ ip saddr }}",
            rf"ip saddr @{CLIENTS} goto {NAME}",
            rf"numgen random mod \d+ vmap {{ \d+ : goto {NAME}(, \d+ : goto {NAME})* }}",
            rf"{DNAT} to {IP}:\d+",
            rf"{DNAT} ip addr \. port to numgen random mod \d+ map {{ \d+ : {IP} \. \d+(, \d+ : {IP} \. \d+)* }}",
            rf"ip daddr {{ {IP}(, {IP})* }} ip daddr \. meta l4proto \. th dport vmap @services",
            rf"ip daddr {re.escape(str(SERVICES))} (ip daddr \. meta l4proto \. th dport vmap @services"
            r"|ct state established,related accept|meta l4proto tcp reject with tcp reset"
            r"|reject with icmp port-unreachable)",
        ]
    ),
    re.ASCII,
)


def block(written, head):
    """Return the lines of one chain, set or map."""
    lines = written.splitlines()
    start = lines.index(f"{head} {{") + 1
    return lines[start : lines.index("}", start)]


def test_one_endpoint_gets_all():
    written = text({WEB: answering(ONE)}, SERVICES)
    assert block(written, "map services")[1] == "elements = { 10.96.0.9 . tcp . 80 : goto service0 }"
    assert block(written, "chain service0") == ["meta l4proto tcp dnat to 10.64.0.3:8080"]


def test_lot_is_as_long_as_the_endpoints():
    (rule,) = block(text({WEB: answering(ONE, TWO)}, SERVICES), "chain service0")
    assert rule.endswith("numgen random mod 2 map { 0 : 10.64.0.3 . 8080, 1 : 10.64.0.4 . 81 }")


def test_service_without_endpoints_is_not_turned():
    written = text({WEB: answering(), place(port=81): answering(affinity_s=9)}, SERVICES)
    assert block(written, "map services") == ["type ipv4_addr . inet_proto . inet_service : verdict"]
    assert "dnat" not in written


def test_ports_of_a_node_leave_its_other_ports_alone():
    table = {WEB: answering(ONE), place("10.64.0.2", 30080): answering(ONE), place("10.64.0.2", 30081): answering(TWO)}
    written = text(table, SERVICES)
    assert block(written, "chain translate")[-1].startswith("ip daddr { 10.64.0.2 } ip daddr . meta l4proto")
    assert "10.64.0.2 . tcp . 30080 : goto service0" in block(written, "map services")[1]
    assert "10.64.0.2" not in "".join(block(written, "chain refuse"))
    assert not any("{" in line for line in block(text({WEB: answering(ONE)}, SERVICES), "chain translate"))


def test_clients_of_an_endpoint_are_taken_along_until_their_time():
    first, second = answering(ONE, TWO).endpoints
    kept = {set_name(WEB, first): {"10.64.0.7": 50, "10.64.0.8": 0}, "clients_of_another": {"10.64.0.7": 9}}
    written = text({WEB: answering(ONE, TWO, affinity_s=30)}, SERVICES, kept)
    assert block(written, f"set {set_name(WEB, first)}")[-1] == "elements = { 10.64.0.7 timeout 30s expires 30s }"
    assert block(written, f"set {set_name(WEB, second)}")[-1] == "timeout 30s"
    assert "another" not in written


def test_affinity_is_reported():
    assert not has_affinity({WEB: answering(ONE)})
    assert has_affinity({WEB: answering(ONE), place(port=81): answering(affinity_s=1)})


addresses = some.integers(0, 2**32 - 1).map(IPv4Address)
ports = some.integers(1, 65535)
endpoints = some.lists(some.builds(Endpoint, addresses, ports), max_size=4, unique=True).map(tuple)
tables = some.dictionaries(
    some.builds(ServicePort, addresses, some.sampled_from(Transport), ports),
    some.builds(Answering, endpoints, some.integers(0, 86400)),
    max_size=5,
)


def strange(written):
    """Return what is none of the lines that may be; all is to lie in one block, the table."""
    head, body = written.splitlines()[:3], written.splitlines()[3:]
    depth = 1
    for number, line in enumerate(body):
        depth += line.endswith("{") - (line == "}")
        if depth == 0 and number < len(body) - 1:
            return body[number:]
    return [*(line for line in body if not LINES.fullmatch(line)), *(head if head != HEAD else []), *range(depth)]


@given(tables)
def test_text_touches_its_own_table_alone(table):
    written = text(table, SERVICES)
    assert strange(written) == []
    for each in table.values():
        assert all(str(endpoint.address) in written for endpoint in each.endpoints)


words = some.one_of(
    some.text(max_size=20), some.sampled_from(["10.96.0.9", "tcp", "10.64.0.3:1", "1 }\nflush ruleset"])
)
values = some.one_of(words, some.integers(-1, 70000), some.none(), some.lists(words, max_size=3))
likely = some.tuples(
    some.just("10.96.0.9") | words, some.just("tcp") | words, some.just(80) | values, some.just(5), values
)


@given(some.lists(some.one_of(likely.map(list), some.lists(values, max_size=6)), max_size=3))
def test_whatever_is_asked_for_is_refused_or_touches_its_own_table_alone(reported):
    try:
        table = read(reported)
    except FieldError:
        return
    assert strange(text(table, SERVICES)) == []
