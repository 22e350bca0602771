"""squeue's answer, from a program in its place that writes names as Slurm does: as they are."""

import pytest

from isthmus.clients.slurm.commands import Form, Holding, SlurmError, jobs_on_nodes

SQUEUE = """#!/bin/sh
[ "$1 $2" = "--all --noheader" ] && [ "${4%%=*}" = --states ] || exit 2
form=${3#--format=}
mark=${form%%[%]*}
[ "$form" = "$mark%A$mark%U$mark%j$mark" ] || exit 2
job() { printf '%s%s%s%s%s%b%s\\n' $mark "$1" $mark "$2" $mark "$3" $mark; }
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


@pytest.mark.parametrize("name", ["train", "two words", "", "%s;$(x)", "7 1001 other", "a|b"])
def test_jobs_have_owner_and_name(squeue, name):
    assert jobs_on_nodes(squeue(f"job 7 1001 '{name}'; job 8 1002 b")) == {
        7: Holding(1001, name),
        8: Holding(1002, "b"),
    }


def test_no_job_is_an_answer(squeue):
    assert jobs_on_nodes(squeue("true")) == {}


def test_name_with_line_breaks_makes_no_job(squeue):
    assert jobs_on_nodes(squeue("job 7 1001 'a\\n9 1002 evil\\nx'")) == {7: Holding(1001, "a")}


def test_name_of_any_bytes_hides_no_job(squeue):
    assert set(jobs_on_nodes(squeue("job 7 1001 '\\0377'; job 8 1001 b"))) == {7, 8}


@pytest.mark.parametrize(
    "lines",
    [
        "exit 1",
        "job 7 nobody x",
        "job x 1001 x",
        "echo slurmctld is busy",
        "echo $mark",
        "echo before; job 7 1001 x",
        "job 7 1001 x; echo ${mark}8${mark}1001",
        "printf '%s7%s1001%sx%s' $mark $mark $mark $mark",
    ],
)
def test_answer_that_is_none_reports_nothing(squeue, lines):
    with pytest.raises(SlurmError):
        jobs_on_nodes(squeue(lines))


def test_mark_is_another_one_each_time():
    assert Form(("%A",)).mark != Form(("%A",)).mark
