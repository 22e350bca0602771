"""Pods' way out while etcd is away: real packets, and daemons' loops over a real etcd."""

from isthmus.network.gateways.active import TTL_S
from tests.support.networks.gateway_daemons import Daemons
from tests.support.networks.namespaces import needs_root
from tests.support.wait import stays, wait


@needs_root
def test_way_out_stays_while_etcd_is_away_and_after(tmp_path):
    with Daemons.of(tmp_path) as daemons:
        # It ends leases to the last, when it does not hear of anybody any more.
        daemons.cluster.stop()
        stays(daemons.goes_out, seconds=TTL_S + 1, because="nobody could take over")
        daemons.cluster.start()
        wait(lambda: daemons.leading in daemons.made["n1"].view.snapshot.state.heard, timeout_s=30)
        stays(daemons.goes_out, seconds=1, because="all are heard of again")
