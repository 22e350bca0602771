"""An upgrade and the way back at once, as an admin runs them, and how long they take.

Figures go to results/upgrade.json; no time is a condition here, for these machines are not alike.
"""

import time

from tests.support.clusters import upgrades
from tests.support.clusters.upgrades import upgrade, versions


def measured(call):
    begun = time.monotonic()
    return call(), round(time.monotonic() - begun, 1)


def test_upgrade_and_way_back_at_once(controller, load):
    planned, plan_s = measured(lambda: upgrade("whole_check", "--check"))
    assert planned.rc == 0
    done, upgrade_s = measured(lambda: upgrade("whole"))
    assert done.rc == 0
    assert set(versions(controller).values()) == {"26.05.5"}
    load.assert_alive()
    gap_s, away_s = load.longest_gap_s(), load.longest_away_s()
    _, back_s = measured(lambda: upgrades.back("whole_back", controller))
    load.assert_alive()
    assert load.accounting() == load.accounted
    upgrades.record(
        round="whole", plan_s=plan_s, upgrade_s=upgrade_s, back_s=back_s,
        longest_gap_s=round(gap_s, 2), longest_away_s=round(away_s, 2),
    )  # fmt: skip
