"""`isthmus bench` as its user has it: what is planned, run, left out, and gone on with."""

import json

import pytest

from tests.support.wait import wait

FILE = "isthmus-bench/test.json"
# One program of each kind; every column is there.
RUN = f"isthmus bench run --size smoke --output {FILE} --tables"


@pytest.fixture(scope="module")
def measured(measuring, login, user):
    """The document of EP, and what was said."""
    login.run_as(user, f"rm -f {FILE}")
    said = login.try_as(user, f"{RUN} ep")
    assert said.rc == 0, said.stderr
    return json.loads(login.run_as(user, f"cat {FILE}"))


def nodes(login, user):
    return len(login.run_as(user, "sinfo --noheader --Node --format=%N").split())


def test_all_that_is_planned_counts(measured):
    results = measured["results"]
    assert not [each["error"] for each in results if each["error"]]
    assert {each["column"] for each in results} == {"slurm", "pod"}
    assert all(each["figures"]["verified"] and each["end_s"] > each["program_s"] > 0 for each in results)
    assert {each["row"] for each in results if each["round"]} == {"2", "4", "8", "16"}


def test_second_run_has_nothing_to_do(measured, login, user):
    again = login.try_as(user, f"{RUN} ep")
    assert (again.rc, "[1/" in again.stderr) == (0, False)


def test_limit_leaves_the_rest_for_later(measured, login, user):
    limited = login.try_as(user, f"{RUN} ep --rounds 3 --limit 0.001")
    assert limited.rc == 3
    assert "runs are left; the same command continues" in limited.stderr


def test_other_size_is_not_mixed_in(measured, login, user):
    refused = login.try_as(user, f"isthmus bench run --size machine --output {FILE} --tables ep")
    assert refused.rc == 1
    assert "has results of size smoke, not machine" in refused.stderr


def test_too_few_nodes_leave_tables_out(measured, login, user):
    planned = json.loads(login.run_as(user, "isthmus bench plan --json"))
    count = nodes(login, user)
    wanted = {f"needs 4 nodes, and {count} take jobs"} if count < 4 else set()
    assert {reason for reason in planned["left_out"].values() if "nodes" in reason} == wanted


def test_ranks_of_an_mpijob_are_on_nodes_of_their_own(measuring, login, user):
    """Two nodes: NetPIPE in all columns; a run whose ranks were elsewhere would not count."""
    done = login.try_as(user, f"{RUN} table4")
    assert done.rc == 0, done.stderr
    results = json.loads(login.run_as(user, f"cat {FILE}"))["results"]
    columns = {each["column"] for each in results if each["table"] == "table4"}
    assert columns == {"slurm", "container", "container-network", "mpijob", "pod"}


@pytest.mark.full
def test_every_program_in_every_column(measuring, login, user):
    # A command on a node may take five minutes.
    run = f"{RUN} table3,table4,table5,table6,figure2,figure3,ep --limit 3"
    done = wait(lambda: login.try_as(user, run), lambda done: done.rc != 3, timeout_s=1200)
    assert done.rc == 0, done.stderr
