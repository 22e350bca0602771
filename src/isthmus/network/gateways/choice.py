"""By which leg a user's pods go out: a pure function of etcd's state."""

from __future__ import annotations

from ipaddress import IPv4Address

from isthmus.model.network import State, User


def leading(state: State) -> str:
    """Return the gateway that packets for the outside go to; empty for none.

    One that is not heard of goes on until another one takes over: that it was cut off from etcd, or that etcd itself
    ends, is no reason to cut off everybody.
    """
    return state.gateway if state.gateway in state.gateways else ""


def way_out(state: State, user: User) -> tuple[str, IPv4Address] | None:
    """Return the gateway of a user's pods, and the user's leg there; None while there is none."""
    gateway = leading(state)
    return (gateway, user.legs[gateway]) if gateway in user.legs else None
