from tests.support.clusters import jobs
from tests.support.wait import wait


def test_srun_runs_on_a_compute_node(login, user, computes):
    host = login.run_as(user, "srun hostname")
    assert host in {node.name for node in computes}


def test_srun_spans_nodes(login, user, two_computes):
    hosts = login.run_as(user, "srun --nodes=2 --ntasks=2 hostname").split()
    assert len(set(hosts)) == 2


def test_job_runs_as_its_user_in_its_home(run_job, user):
    assert run_job("", "id -un; pwd").split() == [user, f"/home/{user}"]


def test_ended_job_is_in_accounting(login, controller, user):
    job = jobs.submit(login, user, "--ntasks=2 --mem-per-cpu=10", "srun true; exit 3")
    jobs.wait_for_job(controller, job, "FAILED")
    record = login.run_as(user, f"sacct -nPX -j {job} -o User,State,ExitCode,AllocCPUS,ReqMem")
    assert record == f"{user}|FAILED|3:0|2|20M"


def test_job_over_its_memory_ends(login, controller, user):
    job = jobs.submit(login, user, "--mem=50", "head -c 300M /dev/zero | tail -c 300M | wc -c")
    assert jobs.wait_for_job(controller, job, "OUT_OF_MEMORY") == "OUT_OF_MEMORY"


def test_job_within_its_memory_completes(run_job):
    assert run_job("--mem=200", "head -c 50M /dev/zero | tail -c 50M | wc -c") == str(50 * 2**20)


def test_job_over_every_node_is_refused(login, user, controller):
    memory = max(int(mib) for mib in controller.output("sinfo --all --Node --noheader --format=%m").split())
    refused = login.try_as(user, f"sbatch --mem={memory + 1} --wrap true")
    assert refused.rc != 0
    assert "Memory specification can not be satisfied" in refused.stderr


def test_user_may_not_end_a_job_of_another(login, controller, user, other_user):
    with jobs.running(login, controller, user) as job:
        refused = login.try_as(other_user, f"scancel {job}")
        assert refused.rc != 0
        assert "Access/permission denied" in refused.stderr
        assert jobs.state(controller, job) == "RUNNING"


def test_no_job_is_left_behind(computes, controller, user, run_job):
    run_job("", "sleep 300 & disown; true")
    # The job is over a moment before its processes are.
    for node in computes:
        wait(lambda node=node: node.run(f"ps -u {user} -o args").stdout, lambda shown: "sleep 300" not in shown)
