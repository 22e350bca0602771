"""A pod's rules as nft 1.0.6 prints them; tests/integration/test_services.py has it read what it writes."""

from isthmus.model.services import Transport
from isthmus.network.services import reading as service_reading
from tests.support.pods.services import answering, place


def rule(chain, *statements):
    return {"rule": {"family": "ip", "table": "isthmus_services", "chain": chain, "expr": [*statements]}}


def lots(*wanted):
    return {"key": {"numgen": {"mode": "random", "mod": 2, "offset": 0}}, "data": {"set": [*map(list, wanted)]}}


def goto(chain):
    return {"goto": {"target": chain}}


ENTRIES = [
    {"metainfo": {"version": "1.0.6", "json_schema_version": 1}},
    {"table": {"family": "ip", "name": "isthmus_services", "handle": 2}},
    {"set": {"name": "clients_10.96.0.11_tcp_443_10.64.0.3_443", "type": "ipv4_addr", "timeout": 60}},
    {
        "map": {
            "name": "services",
            "map": "verdict",
            "elem": [
                [{"concat": ["10.96.0.10", "udp", 53]}, goto("service1")],
                [{"concat": ["10.96.0.9", "tcp", 80]}, goto("service0")],
                [{"concat": ["10.96.0.11", "tcp", 443]}, goto("service2")],
            ],
        }
    },
    {"chain": {"name": "service0", "handle": 1}},
    rule(
        "service0",
        {"match": {"op": "==", "left": {"meta": {"key": "l4proto"}}, "right": "tcp"}},
        {"dnat": {"addr": "10.64.0.3", "port": 8080}},
    ),
    rule(
        "service1",
        {
            "dnat": {
                "family": "ip",
                "addr": {"map": lots((0, {"concat": ["10.64.0.4", 53]}), (1, {"concat": ["10.64.0.3", 5353]}))},
            }
        },
    ),
    rule("service2_0", {"set": {"op": "update", "set": "@clients_10.96.0.11_tcp_443_10.64.0.3_443"}}),
    rule("service2_0", {"dnat": {"addr": "10.64.0.3", "port": 443}}),
    rule("service2_1", {"dnat": {"addr": "10.64.0.4", "port": 443}}),
    rule("service2", {"match": {"op": "==", "right": "@clients_10.96.0.11_tcp_443_10.64.0.3_443"}}, goto("service2_0")),
    rule("service2", {"vmap": lots((0, goto("service2_0")), (1, goto("service2_1")))}),
    rule("translate", {"vmap": {"key": {"concat": []}, "data": "@services"}}),
    rule("refuse", {"reject": {"type": "tcp reset"}}),
]


def test_rules_report_who_answers_where():
    assert service_reading.table(ENTRIES) == {
        place(): answering("10.64.0.3:8080"),
        place("10.96.0.10", 53, Transport.UDP): answering("10.64.0.3:5353", "10.64.0.4:53"),
        place("10.96.0.11", 443): answering("10.64.0.3:443", "10.64.0.4:443"),
    }


def test_pod_without_endpoints_has_an_empty_table():
    assert service_reading.table([{"map": {"name": "services", "map": "verdict"}}]) == {}
