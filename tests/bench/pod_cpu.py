"""Where a pod's processor time goes: jobs that do more and more of what a pod's job does, by Slurm's accounting.

The kinds are submitted in turn, so that all of them feel what else the machine does. The rest of a pod's time is spent
by others than its job: the control plane, whose own processes are summed up before and after a burst of pods, and
Slurm's and the network's daemons, which are what is left of the whole machine's.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from typing import Any

from rich.console import Console

from tests.bench import pods, testbed
from tests.bench.results import save

PYTHON = "/opt/isthmus/bin/python -I"
# In the order in which each adds to the one before; a supervisor is the sum of all, and of its own work.
SCRIPTS = {
    "empty": "true",
    "interpreter": f"exec {PYTHON} -c pass",
    "imports": f"exec {PYTHON} -m isthmus.supervisor",
    "apptainer": "exec apptainer --quiet exec --contain --cleanenv --no-home --pid {image} true",
}
SUBMIT = "sbatch --quiet --job-name=isthmus-cpu-{kind} --pod-network --mem=88 --output=/dev/null"
ROUNDS = """
set -e
for round in $(seq {count}); do
{submissions}
done
while squeue --me --noheader --format=%j | grep -q ^isthmus-cpu-; do sleep 1; done
"""
ACCOUNTED = "sacct --noheader --parsable2 --starttime=now-2hours --format=JobIDRaw,JobName,TotalCPU"
# Sums up the processes of the job it runs in (proc_pid_stat(5)).
OWN = r"""
import os, pathlib, sys
mark, sum_ = f"/job_{os.environ['SLURM_JOB_ID']}/", 0
for folder in pathlib.Path("/proc").glob("[0-9]*"):
    try:
        if mark in (folder / "cgroup").read_text():
            sum_ += sum(map(int, (folder / "stat").read_text().rpartition(")")[2].split()[11:15]))
    except OSError:
        pass
print(sum_ / os.sysconf("SC_CLK_TCK"))
"""
JOB = "import json,sys; print(json.load(sys.stdin)['job']['id'])"
IN_JOB = f'srun --quiet --overlap --jobid="$(isthmus status --json | python3 -c "{JOB}")"'


def seconds(text: str) -> float:
    """Read what sacct writes: [days-][hours:]minutes:seconds."""
    days, _, rest = text.rpartition("-")
    parts = [float(part) for part in rest.split(":")]
    whole = 0.0
    for part in parts:
        whole = whole * 60 + part
    return whole + 86400 * int(days or 0)


def accounted(cluster: testbed.TestBed, name: str) -> list[float]:
    """Return the processor seconds of the jobs of a name: of their batch steps, which hold all they ran."""
    rows = [line.split("|") for line in cluster.run(f"{ACCOUNTED} --name={name}").splitlines()]
    wanted = {job for job, of, _ in rows if of == name}
    return [seconds(cpu) for job, of, cpu in rows if of == "batch" and job.removesuffix(".batch") in wanted]


def jobs(cluster: testbed.TestBed, image: str, count: int) -> dict[str, list[float]]:
    """Run the kinds of jobs in turn; return the processor seconds of each."""
    submissions = "\n".join(
        f"{SUBMIT.format(kind=kind)} <<'END' >/dev/null\n#!/bin/sh\n{script.format(image=image)}\nEND"
        for kind, script in SCRIPTS.items()
    )
    cluster.run(ROUNDS.format(count=count, submissions=submissions))
    return {kind: accounted(cluster, f"isthmus-cpu-{kind}")[-count:] for kind in SCRIPTS}


def measure(cluster: testbed.TestBed, count: int, many: int) -> dict[str, Any]:
    """Run jobs, supervisors and pods; return the seconds of each."""
    console = Console()
    reference = json.loads(cluster.run("cat /etc/isthmus/images.json"))["images"][pods.IMAGE]["reference"]
    image = cluster.run(f"isthmus pull docker://{reference}").strip()
    with console.status(f"{count} jobs of {len(SCRIPTS)} kinds"):
        taken = jobs(cluster, image, count)
    cluster.run("isthmus up --json")
    try:
        with console.status(f"{count} jobs with a supervisor"):
            pods.supervised(cluster, reference, count)
            taken["supervised"] = accounted(cluster, "isthmus-supervised")[-count:]
        with console.status(f"{many} pods"):
            before = float(cluster.run(f"{IN_JOB} python3 -", stdin=OWN))
            burst = pods.pods(cluster, reference, 1, many)["burst"]
            control_plane_s = float(cluster.run(f"{IN_JOB} python3 -", stdin=OWN)) - before
    finally:
        cluster.run("isthmus down")
    medians = {kind: round(statistics.median(each), 3) for kind, each in taken.items()}
    pod = {"machine": round(burst["cpu_s"] / many, 3), "control_plane": round(control_plane_s / many, 3)}
    return {"job_cpu_s": medians, "pod_cpu_s": pod, "pods_per_s": round(many / burst["seconds"], 2), "all": taken}


def main() -> int:
    """Measure and write JSON."""
    parser = argparse.ArgumentParser(description="Show where the processor time of a small pod goes.")
    parser.add_argument("--jobs", type=int, default=20, help="of each kind (default: %(default)s)")
    parser.add_argument("--burst", type=int, default=100, help="pods at once (default: %(default)s)")
    testbed.add_arguments(parser)
    arguments = parser.parse_args()
    figures = measure(testbed.TestBed(arguments.name, arguments.host, arguments.user), arguments.jobs, arguments.burst)
    path = save("pod_cpu", **figures)
    print({name: figures[name] for name in ("job_cpu_s", "pod_cpu_s", "pods_per_s")}, path, sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
