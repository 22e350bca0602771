"""Flannel's own daemon dies; what every network that users share has is in test_shared_networks."""

import pytest

from tests.system.network.conftest import PORT, served
from tests.system.network.test_daemon import kill


@pytest.mark.disruptive
def test_live_pods_survive_flannelds_death(login, controller, user, other_user, two_computes, probe):
    if "flannel" not in controller.variables["network_drivers"]:
        pytest.skip("jobs of this site cannot have Flannel's network: network_drivers")
    near, far = two_computes
    with served(login, controller, (user, other_user), "--pod-network=flannel", [near.name, far.name], probe) as (
        mine,
        _,
    ):
        subnet = near.output("cat /run/flannel/subnet.env")
        kill(near, "isthmus-flanneld")
        assert near.output("cat /run/flannel/subnet.env") == subnet
        mine[near.name].run(f"{probe} tcp {mine[far.name].address} {PORT}")
        mine[far.name].run(f"{probe} tcp {mine[near.name].address} {PORT}")
