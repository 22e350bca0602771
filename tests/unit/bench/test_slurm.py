"""A launch as a batch job: Slurm's commands are programs of a folder that run the script at once, or not at all."""

import os

import pytest

from isthmus.bench import output, tables
from isthmus.bench.launches import Column
from isthmus.bench.output import OutputError
from isthmus.bench.scripts import Site
from isthmus.bench.sizes import SIZES, Table
from isthmus.bench.slurm import Slurm
from isthmus.bench.timing import Timing

SITE = Site("/programs", "", "", {}, 8, has_network=False)
LAUNCH = next(each for each in tables.launches(Table.EP, SIZES["smoke"]) if each.column is Column.SLURM)
# It keeps the script that it is given, and starts it with the options' output; the job's id is in the file `job`.
SBATCH = """#!/bin/sh
for word; do case $word in --output=*) out=${word#*=};; --parsable) ;; --*=*) ;; *) exit 9;; esac; done
cat >"$FOLDER/script"; echo 7 >"$FOLDER/job"; echo 7
(sh "$FOLDER/how" >"$out" 2>&1; rm -f "$FOLDER/job") >/dev/null 2>&1 &
"""
SQUEUE = """#!/bin/sh
echo asked >>"$FOLDER/asked"
for word; do case $word in --format=*) form=${word#*=};; esac; done
[ ! -e "$FOLDER/job" ] || echo "$form" | sed 's/%i/7/; s/%T/RUNNING/; s/%r/None/; s/%N/c1/; s/%[LSjk]/x/g'
"""
SRUN = """#!/bin/sh
echo "rank begins c1 100.0"; echo "rank begins c2 100.0"
echo '{"program": "ep", "ranks": 2, "verified": true}'
echo "rank ends c1 101.0 0"; echo "rank ends c2 101.0 0"
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    for name, text in {
        "sbatch": SBATCH,
        "squeue": SQUEUE,
        "srun": SRUN,
        "scancel": '#!/bin/sh\nrm "$FOLDER/job"\n',
    }.items():
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    (tmp_path / "how").write_text('exec bash "$FOLDER/script"\n')
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setenv("FOLDER", str(tmp_path))
    return tmp_path


@pytest.fixture
def platform(folder):
    return Slurm(SITE, folder, Timing(squeue_s=0.2))


def test_job_runs_and_is_read(platform, folder):
    text, began, ended = platform.run(LAUNCH, "b1")
    assert output.read(text, LAUNCH).hosts == {"c1": 1, "c2": 1}
    assert 0 < ended - began < 10
    assert not list(folder.glob("b1.*"))


def test_slurmctld_is_not_asked_while_a_job_runs(folder):
    (folder / "how").write_text('sleep 0.6; exec bash "$FOLDER/script"\n')
    Slurm(SITE, folder, Timing(squeue_s=60.0)).run(LAUNCH, "b1")
    assert (folder / "asked").read_text().count("asked") <= 4


def test_job_that_ended_without_its_last_act_is_noticed(platform, folder):
    (folder / "how").write_text("echo killed\n")
    text, *_ = platform.run(LAUNCH, "b1")
    with pytest.raises(OutputError, match="of 2 ranks 0 began and 0 ended: killed"):
        output.read(text, LAUNCH)


def test_refused_job_says_why(platform, folder):
    (folder / "sbatch").write_text("#!/bin/sh\necho 'Node count specification invalid' >&2; exit 1\n")
    with pytest.raises(OutputError, match=r"sbatch refused it: .*\n?.*Node count specification invalid"):
        platform.run(LAUNCH, "b1")


def test_job_that_does_not_end_is_cancelled(folder):
    (folder / "how").write_text("sleep 30\n")
    with pytest.raises(OutputError, match=r"job 7 has not ended after 0\.5 s; see `squeue --me`"):
        Slurm(SITE, folder, Timing(limit_s=lambda _: 0.5)).run(LAUNCH, "b1")
    assert not (folder / "job").exists()
