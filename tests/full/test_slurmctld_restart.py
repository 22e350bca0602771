"""A step that begins when slurmctld is back, and its nodes have not reported it yet that they are there.

To slurmctld such nodes are busy. srun then waits until another step of its job ends, and nothing notifies it that the
nodes have registered meanwhile, a few seconds later: it asks again after SlurmctldTimeout, of which it takes at least
60 s, and its pid modulo 10 (Slurm 24.11: launch_g_create_job_step in src/srun/launch.c, _pick_step_nodes in
src/stepmgr/stepmgr.c, read_slurm_conf in src/slurmctld/read_config.c, which marks nodes as up before it knows them).
"""

import re

from tests.support.clusters import jobs
from tests.support.wait import wait

SCRIPT = """\
#!/bin/bash
echo began
until test -e .isthmus-test-$SLURM_JOB_ID.step; do sleep 0.1; done
srun --mem=20 echo stepped
"""
OPTIONS = "--parsable --no-requeue --output=.isthmus-test-%j.out --nodes=2 --ntasks-per-node=1 --mem=60 --time=5"
PID_S = 9
# To start the step, and for Slurm's records in accounting.
MARGIN_S = 40


def restart(controller, job):
    """Let slurmctld die as in a crash; return as soon as the next one answers."""
    show = "systemctl show --property=MainPID --value slurmctld"
    jobs.wait_until_saved(controller, job)
    dead = controller.output(show)
    controller.output(f"kill -9 {dead}")
    wait(lambda: controller.output(show) not in {dead, "0"}, interval_s=0.1)
    wait(lambda: "UP" in controller.run("scontrol ping").stdout, interval_s=0.1)


def test_step_begun_before_nodes_have_registered_comes_within_sruns_wait(controller, login, user, two_computes):
    longest_s = max(60, int(re.match(r"\d+", jobs.settings(controller)["SlurmctldTimeout"])[0])) + PID_S
    job = login.run_as(user, f"sbatch {OPTIONS} <<'END'\n{SCRIPT}END")
    try:
        wait(lambda: "began" in login.try_as(user, f"cat .isthmus-test-{job}.out").stdout)
        restart(controller, job)
        login.run_as(user, f"touch .isthmus-test-{job}.step")
        jobs.wait_for_job(controller, job, "COMPLETED", timeout_s=longest_s + MARGIN_S)
        assert jobs.output(login, user, job).count("stepped") == 2
    finally:
        jobs.cancel(controller, job)
        login.run_as(user, f"rm -f .isthmus-test-{job}.*")
