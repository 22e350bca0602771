"""A conversion of accounting that fails leaves the cluster of before running; mended, the same upgrade goes on."""

import re

import pytest

from tests.support.clusters import jobs, upgrades
from tests.support.clusters.upgrades import program, upgrade, versions
from tests.support.wait import wait

SQL = "mariadb --execute='{} ON slurm_acct_db.* {} slurm@localhost'"


@pytest.fixture
def refused(controller):
    """It may not alter its tables, which is seen when it tries to."""
    controller.output(SQL.format("REVOKE ALTER", "FROM"))
    yield
    controller.output(SQL.format("GRANT ALTER", "TO"))


def test_failed_conversion_leaves_the_old_cluster_running(refused, controller, login, user, two_computes, load):
    failed = upgrade("upgrade_conversion_failed")
    said = upgrades.words(failed.output)
    assert failed.rc != 0
    assert re.search(
        r"Slurm 24\.11\S+ runs again with the accounting and the state of before: accounting was not", said
    )
    assert "ALTER command denied" in said
    assert controller.output("scontrol --version").split()[-1].startswith("24.11")
    assert not [name for name in ("slurmctld", "slurmdbd") if "(deleted)" in program(controller, name)]
    wait(lambda: {version[:5] for version in versions(controller).values()} == {"24.11"})
    load.assert_alive()
    assert load.accounting() == load.accounted
    assert jobs.settings(controller)["SlurmdTimeout"].split()[0] == "20"
    login.run_as(user, f"srun --mem=10 --pod-network --nodelist={two_computes[0].name} true")


@pytest.fixture
def unreachable(two_computes, tmp_path):
    """An inventory in which a node does not answer; its name."""
    name, inventory = two_computes[0].name, tmp_path / "hosts.yml"
    # Its address stays: Slurm's settings have it, too.
    inventory.write_text(f"all: {{hosts: {{{name}: {{ansible_port: 1}}}}}}\n")
    return name, ("-i", str(inventory))


def test_mended_it_goes_on_and_leaves_a_node_that_does_not_answer(controller, two_computes, unreachable, load):
    name, inventory = unreachable
    left = {node.name: "24.11" if node.name == name else "26.05" for node in two_computes}
    done = upgrade("upgrade_conversion_mended", *inventory)
    # slurmctld knows the version of a node that has registered with it.
    wait(lambda: {one: version[:5] for one, version in versions(controller).items()}, lambda seen: seen == left)
    assert re.search(rf"left.*\b{name}\b", upgrades.words(done.output))
    load.assert_alive()
    assert load.accounting() == load.accounted


def test_node_that_answers_again_is_upgraded(controller, load):
    assert upgrade("upgrade_conversion_left").rc == 0
    assert set(versions(controller).values()) == {"26.05.5"}
    load.assert_alive()
    load.assert_alive()
    assert load.accounting() == load.accounted


def test_and_back(controller, load):
    upgrades.back("upgrade_conversion_back", controller)
    load.assert_alive()
    assert load.accounting() == load.accounted
