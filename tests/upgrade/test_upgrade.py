"""From the distribution's Slurm to Debian testing's while jobs run: refused, stopped, cut off, ended, and back.

The load is a server and a client that asks it ten times a second, both in the user's pod network on different nodes, a
step over both nodes, a job that waits, ended jobs in accounting, and a drain of somebody else's.
"""

import json
import os
import re
from pathlib import Path

import pytest

from tests.support.clusters import asking, jobs, playbooks
from tests.support.wait import wait

NEW = {"slurm_version": "26.05", "slurm_package_source": "forky"}
UPGRADE = "playbooks/upgrade.yml"
FOREIGN = "a disk of the admin's"
ENDED = 20
BOTH = "exec srun --nodes=2 --ntasks=2 sh -c 'while :; do echo $SLURM_PROCID $(date +%s); sleep 1; done'\n"


def upgrade(log, *arguments, **variables):
    return playbooks.play(log, UPGRADE, "-e", json.dumps(NEW | variables), *arguments)


def running(node, daemon):
    """The program's version as the file has it that the daemon runs of."""
    return node.output(f"readlink /proc/$(pidof -s {daemon})/exe")


def versions(controller):
    shown = controller.output("sinfo --Node --noheader --format='%N %v'")
    return dict(line.split() for line in shown.splitlines())


@pytest.fixture(scope="module")
def load(login, controller, two_computes, user):
    """Jobs that live through it all: name -> id; and what accounting says of those that ended before."""
    first, second = (node.name for node in two_computes)
    ended = [jobs.submit(login, user, "--mem=10", "true") for _ in range(ENDED)]
    for job in ended:
        jobs.wait_for_job(controller, job, "COMPLETED")
    found = asking.begin(login, controller, user, (first, second))
    asking.write(login, user, "both", BOTH)
    found["both"] = jobs.submit(login, user, f"{asking.NETWORK} --nodes=2 --ntasks-per-node=1", "sh .asking-both")
    jobs.wait_for_job(controller, found["both"], "RUNNING")
    found["waiting"] = jobs.submit(login, user, "--mem=10 --hold", "true")
    controller.output(f"scontrol update NodeName={second} State=DRAIN Reason={json.dumps(FOREIGN)}")
    yield {**found, "ended": ended, "accounting": accounting(controller, ended)}
    controller.run(f"scontrol update NodeName={second} State=RESUME")
    jobs.cancel(controller, *found.values())
    asking.remove(login, user)


def accounting(controller, ended):
    return controller.output(
        f"sacct --parsable2 --jobs={','.join(ended)} --format=JobID,State,Elapsed,User,NodeList,Start,End"
    )


def assert_load_lives(controller, load):
    asking.assert_ran_on(controller, *(load[name] for name in ("server", "client", "both")))


def daemons(controller):
    return controller.output("systemctl show --property=MainPID slurmdbd slurmctld")


def test_plan_is_printed_and_changes_nothing(controller, load):
    before = daemons(controller)
    planned = upgrade("upgrade_check", "--check")
    assert planned.rc == 0
    assert re.search(r"controller +ctl +24\.11\.\S+ +26\.05", planned.output)
    assert not planned.changed
    assert daemons(controller) == before


REFUSED = {
    "back": ({"slurm_version": "23.11"}, "newer than slurm_version 23.11, and Slurm cannot go back"),
    "pmix": ({"slurm_mpi_default": "pmix"}, "no plugin mpi/pmix"),
    "no_such_release": ({"slurm_version": "24.12"}, "24.12 is none of the releases"),
    "no_such_package": (
        {"slurm_version": "25.05", "slurm_package_source": "release"},
        "no source of this host has Slurm",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_go_well_is_refused_before_any_daemon_stops(controller, load, case):
    variables, message = REFUSED[case]
    before = daemons(controller)
    refused = upgrade(f"upgrade_refused_{case}", **variables)
    assert refused.rc != 0
    assert message in re.sub(r"\s+", " ", refused.output)
    assert daemons(controller) == before


def test_hook_stops_it_after_the_controller(controller, two_computes, load):
    stopped = upgrade("upgrade_stopped", upgrade_hooks={"before_batch": [["false"]]})
    assert stopped.rc != 0
    assert controller.output("scontrol --version").endswith("26.05.5")
    assert "(deleted)" not in running(controller, "slurmctld")
    assert all(version.startswith("24.11") for version in versions(controller).values())
    assert_load_lives(controller, load)


@pytest.fixture
def another(controller):
    """A process, this one, that holds the file of an upgrade."""
    file = Path(controller.variables["state_dir"], "upgrade/running")
    began = Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19]
    file.write_text(f"{os.getpid()} {began}\n")
    yield
    file.unlink()


def test_second_upgrade_at_the_same_time_is_refused(another):
    refused = upgrade("upgrade_second")
    assert refused.rc != 0
    assert "another upgrade of" in refused.output


def test_killed_in_a_batch_it_goes_on(controller, two_computes, load):
    playbooks.cut("Run slurmd on the new files", UPGRADE, "-e", json.dumps(NEW))
    assert_load_lives(controller, load)
    done = upgrade("upgrade_rest")
    assert done.rc == 0
    assert set(versions(controller).values()) == {"26.05.5"}


def test_another_run_changes_nothing():
    again = upgrade("upgrade_again")
    assert again.rc == 0
    assert "Nothing is to be done" in again.output
    assert not again.changed


def test_all_daemons_run_of_new_files(controller, login, two_computes):
    places = [(controller, "slurmctld"), (controller, "slurmdbd"), (login, "sackd")]
    places += [(node, "slurmd") for node in two_computes]
    assert not [f"{node.name}: {daemon}" for node, daemon in places if "(deleted)" in running(node, daemon)]
    for node in (controller, login, *two_computes):
        assert "slurm" in node.output("apt-mark showhold")


def test_nothing_that_ran_was_lost(controller, login, user, two_computes, load):
    assert_load_lives(controller, load)
    found = asking.gaps(login, user, load["client"])
    print(f"of the client: {found}")
    assert found["longest_gap_s"] <= asking.LONGEST_GAP_S
    assert accounting(controller, load["ended"]) == load["accounting"]


def test_drains_and_timeouts_are_as_before(controller, two_computes):
    first, second = (controller.output(f"scontrol show node {node.name}") for node in two_computes)
    assert "DRAIN" not in first
    assert FOREIGN in second
    assert jobs.settings(controller)["SlurmdTimeout"].split()[0] == "20"


def test_new_jobs_run_with_pod_networks(controller, login, user, two_computes, load):
    controller.output(f"scontrol release {load['waiting']}")
    jobs.wait_for_job(controller, load["waiting"], "COMPLETED")
    assert login.run_as(user, f"srun --mem=10 --pod-network --nodelist={two_computes[0].name} cat /proc/net/dev").count(
        "lo:"
    )


def test_way_back(controller, login, user, two_computes, load):
    """Jobs that run are given up by the older Slurm only where it does not know them."""
    (folder,) = sorted(Path(controller.variables["state_dir"], "backups").glob("*/stopped"))[-1:]
    name = controller.variables["name"]
    confirmed = ["-e", f"backup_from={folder.parent}", "-e", f"backup_confirm={name}", "-e", "restore_packages=true"]
    playbooks.succeed("upgrade_back", "playbooks/restore.yml", *confirmed)
    assert controller.output("scontrol --version").split()[-1].startswith("24.11")
    wait(lambda: {version[:5] for version in versions(controller).values()} == {"24.11"})
    assert accounting(controller, load["ended"]) == load["accounting"]
    login.run_as(user, f"srun --mem=10 --pod-network --nodelist={two_computes[0].name} true")
