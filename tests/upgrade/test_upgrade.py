"""From the distribution's Slurm to Debian testing's while jobs run: stopped, cut off, ended, and back.

UPGRADE_ROUNDS of it, one after the other (1).
"""

import json
import os
import re

import pytest

from tests.support.clusters import asking, jobs, playbooks, upgrades
from tests.support.clusters.upgrade_load import FOREIGN, loaded
from tests.support.clusters.upgrades import NEW, UPGRADE, program, upgrade, versions
from tests.support.wait import wait

ROUNDS = int(os.environ.get("UPGRADE_ROUNDS", "1"))


@pytest.fixture(scope="module", params=range(1, ROUNDS + 1))
def number(request):
    """Which round it is: all tests run in it before the next one begins."""
    return request.param


@pytest.fixture(scope="module")
def load(number, login, controller, two_computes, user):
    """What runs through all tests of a round."""
    with loaded(login, controller, two_computes, user) as found:
        yield found


def test_plan_is_printed_and_changes_nothing(controller, load, number):
    before = upgrades.daemons(controller)
    planned = upgrade(f"upgrade_check_{number}", "--check")
    assert planned.rc == 0
    assert re.search(r"controller +ctl +24\.11\.\S+ +26\.05", planned.output)
    assert not planned.changed
    assert upgrades.daemons(controller) == before


def test_hook_stops_it_after_the_controller(controller, two_computes, load, number):
    begun = controller.output("date +%s")
    stopped = upgrade(f"upgrade_stopped_{number}", upgrade_hooks={"before_batch": [["false"]]})
    assert stopped.rc != 0
    # In the foreground, in each round: the one before has brought older tables back.
    assert controller.output("stat --format=%Y /var/log/slurm/conversion.log") > begun
    assert controller.output("scontrol --version").endswith("26.05.5")
    assert "(deleted)" not in program(controller, "slurmctld")
    wait(lambda: {version[:5] for version in versions(controller).values()} == {"24.11"})
    load.assert_alive()


def test_killed_in_a_batch_it_goes_on(controller, two_computes, load, number):
    playbooks.cut("Run slurmd on the new files", UPGRADE, "-e", json.dumps(NEW))
    load.assert_alive()
    assert upgrade(f"upgrade_rest_{number}").rc == 0
    assert set(versions(controller).values()) == {"26.05.5"}


def test_another_run_changes_nothing(load, number):
    again = upgrade(f"upgrade_again_{number}")
    assert again.rc == 0
    assert "Nothing is to be done" in again.output
    assert not again.changed


def test_all_daemons_run_of_new_files(controller, login, two_computes, load):
    places = [(controller, "slurmctld"), (controller, "slurmdbd"), (login, "sackd")]
    places += [(node, "slurmd") for node in two_computes]
    assert not [f"{node.name}: {daemon}" for node, daemon in places if "(deleted)" in program(node, daemon)]
    for node in (controller, login, *two_computes):
        assert "slurm" in node.output("apt-mark showhold")


def test_nothing_that_ran_was_lost(load, number):
    load.assert_alive()
    gap_s = load.longest_gap_s()
    upgrades.record(round=number, longest_gap_s=round(gap_s, 2), longest_away_s=round(load.longest_away_s(), 2))
    assert gap_s <= asking.LONGEST_GAP_S
    assert load.accounting() == load.accounted
    before = load.rounds()
    wait(lambda: load.rounds() > before)


def test_drains_and_timeouts_are_as_before(controller, two_computes, load):
    first, second = (controller.output(f"scontrol show node {node.name}") for node in two_computes)
    assert "DRAIN" not in first
    assert FOREIGN in second
    assert jobs.settings(controller)["SlurmdTimeout"].split()[0] == "20"


def test_new_jobs_run_with_pod_networks(controller, login, user, two_computes, load):
    controller.output(f"scontrol release {load.waiting}")
    jobs.wait_for_job(controller, load.waiting, "COMPLETED")
    assert login.run_as(user, f"srun --mem=10 --pod-network --nodelist={two_computes[0].name} cat /proc/net/dev").count(
        "lo:"
    )


def test_way_back(controller, login, user, two_computes, load, number):
    upgrades.back(f"upgrade_back_{number}", controller)
    assert controller.output("scontrol --version").split()[-1].startswith("24.11")
    wait(lambda: {version[:5] for version in versions(controller).values()} == {"24.11"})
    load.assert_alive()
    assert load.accounting() == load.accounted
    login.run_as(user, f"srun --mem=10 --pod-network --nodelist={two_computes[0].name} true")
    # The upgrade had narrowed what it widened; so has the way back.
    assert jobs.settings(controller)["SlurmdTimeout"].split()[0] == "20"
