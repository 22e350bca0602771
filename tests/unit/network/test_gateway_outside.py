"""When a gateway holds the outside addresses, and says so."""

from ipaddress import IPv4Address

from isthmus.model.network import Node, State
from isthmus.model.node_network import NodePlan
from isthmus.network.gateways.outside import ANNOUNCEMENTS, OutsideAddresses

NODES = {name: Node(name, IPv4Address("192.0.2.1"), gateway=True) for name in ("g1", "g2")}
ADDRESSES = frozenset({IPv4Address("198.51.100.10"), IPv4Address("198.51.100.11")})


class Holder:
    def __init__(self):
        self.held, self.announced, self.elsewhere = frozenset(), 0, False

    def hold(self, wanted):
        before, self.held = self.held, frozenset(wanted)
        return before != self.held

    def announce(self, addresses):
        assert addresses == self.held
        self.announced += 1

    def reaches(self, addresses):
        return True

    def is_elsewhere(self, address):
        return self.elsewhere


def made():
    holder = Holder()
    return holder, OutsideAddresses("g1", ADDRESSES, holder)


def test_addresses_are_held_while_the_node_leads_and_announced_some_times():
    holder, outside = made()
    outside.follow(NodePlan(), State(NODES, gateway="g2"))
    assert (holder.held, holder.announced) == (frozenset(), 0)
    outside.follow(NodePlan(), State(NODES, gateway="g1"))
    for _ in range(2 * ANNOUNCEMENTS):
        outside.announce()
        outside.follow(NodePlan(), State(NODES, gateway="g1"))
    assert (holder.held, holder.announced) == (ADDRESSES, ANNOUNCEMENTS)


def test_addresses_that_are_let_go_of_are_announced_no_more():
    holder, outside = made()
    outside.follow(NodePlan(), State(NODES, gateway="g1"))
    outside.follow(NodePlan(), State(NODES, gateway=""))
    outside.announce()
    assert (holder.held, holder.announced) == (frozenset(), 1)


def test_addresses_that_another_has_are_given_up_until_etcd_is_there_again():
    holder, outside = made()
    outside.follow(NodePlan(), State(NODES, gateway="g1"))
    assert not outside.give_up()
    holder.elsewhere = True
    assert outside.give_up()
    outside.follow(NodePlan(), State(NODES, gateway="g1"))
    assert holder.held == frozenset()
    outside.resume()
    outside.follow(NodePlan(), State(NODES, gateway="g1"))
    assert holder.held == ADDRESSES


def test_gateway_that_does_not_lead_has_nothing_to_give_up():
    holder, outside = made()
    holder.elsewhere = True
    outside.follow(NodePlan(), State(NODES, gateway="g2"))
    assert not outside.give_up()
    outside.follow(NodePlan(), State(NODES, gateway="g1"))
    assert holder.held == ADDRESSES
