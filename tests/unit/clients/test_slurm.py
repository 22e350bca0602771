"""squeue's answer, from a program in its place that writes names as Slurm does: as they are."""

import pytest

from isthmus.clients.slurm import Holding, SlurmError, jobs_on_nodes, outside_of_jobs

SQUEUE = """#!/bin/sh
[ "$1 $2" = "--noheader --states" ] && [ "$4" = --format ] || exit 2
mark=${5%% *}
[ "$5" = "$mark %A %U %j" ] || exit 2
"""


@pytest.fixture
def squeue(tmp_path):
    """Make a squeue that goes on with some lines of shell; give Slurm's prefix."""

    def make(lines):
        (tmp_path / "bin").mkdir()
        program = tmp_path / "bin/squeue"
        program.write_text(SQUEUE + lines)
        program.chmod(0o755)
        return tmp_path

    return make


@pytest.mark.parametrize("name", ["train", "two words", "", "%s;$(x)", "7 1001 other"])
def test_jobs_have_owner_and_name(squeue, name):
    prefix = squeue(f"printf '%s\\n' \"$mark 7 1001 \"'{name}' \"$mark 8 1002 b\"")
    assert jobs_on_nodes(prefix) == {7: Holding(1001, name), 8: Holding(1002, "b")}


def test_no_job_is_an_answer(squeue):
    assert jobs_on_nodes(squeue("true")) == {}


def test_name_with_line_breaks_makes_no_job(squeue):
    prefix = squeue("printf '%s 7 1001 a\\n9 1002 evil\\nx\\n' $mark")
    assert jobs_on_nodes(prefix) == {7: Holding(1001, "a")}


def test_name_of_any_bytes_hides_no_job(squeue):
    prefix = squeue("printf '%s 7 1001 \\377\\n%s 8 1001 b\\n' $mark $mark")
    assert set(jobs_on_nodes(prefix)) == {7, 8}


@pytest.mark.parametrize("lines", ["exit 1", "echo $mark 7 nobody x", "echo $mark x"])
def test_answer_that_is_none_tells_nothing(squeue, lines):
    with pytest.raises(SlurmError):
        jobs_on_nodes(squeue(lines))


def test_new_job_gets_nothing_of_the_job_that_submits_it():
    site = {"PATH": "/bin", "SLURM_CONF": "/etc/slurm.conf"}
    job = {"SLURM_JOB_ID": "2", "SLURM_MEM_PER_NODE": "2048", "SPANK_X": "1", "ISTHMUS_RESERVATION": "kubernetes"}
    assert outside_of_jobs({**site, **job, "SBATCH_PARTITION": "other"}) == site


def test_users_own_options_hold_outside_of_jobs():
    environment = {"SBATCH_PARTITION": "long", "SLURM_TIME_FORMAT": "relative"}
    assert outside_of_jobs(environment) == environment
