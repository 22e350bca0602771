"""What is counted of Slurm's answers, under the names that slurmctld's own metrics have."""

import pytest

from isthmus.monitoring.parts import slurm

JOBS = [
    ["RUNNING", "cpu", "physics", "4", "2"],
    ["RUNNING", "gpu", "physics", "1", "1"],
    ["PENDING", "cpu,gpu", "biology", "8", "2-4"],
    ["COMPLETED", "cpu", "biology", "8", "1"],
    ["SOMETHING_NEW", "cpu", "biology", "1", "1"],
]
NODES = """cpu|c1|mixed|3/5/0/8|1000
gpu|c1|mixed|3/5/0/8|1000
cpu|c2|idle*|0/8/0/8|2000
cpu|c3|drained~|0/0/8/8|2000
cpu|c4|draining@|8/0/0/8|2000
cpu|c5|down*|0/0/8/8|2000
"""
SDIAG = """*******************************************************
sdiag output at Tue Nov 24 12:00:00 2026 (1795521600)
Data since      Tue Nov 24 00:00:00 2026 (1795478400)
*******************************************************
Server thread count:  3
RPC queue enabled:    0
Agent queue size:     2
Agent count:          1
Agent thread count:   4
DBD Agent queue size: 5

Jobs submitted: 21
Jobs failed:    1

Main schedule statistics (microseconds):
\tLast cycle:   127
\tMax cycle:    3000
\tMean cycle:   250
\tLast queue length: 7

Backfilling stats
\tTotal backfilled jobs (since last slurm start): 9
\tLast cycle: 88
\tLast queue length: 6

Remote Procedure Call statistics by message type
\tREQUEST_PARTITION_INFO                  ( 2009) count:17     ave_time:149    total_time:2533
"""


def values(metrics):
    """Name, or name and label's value -> figure."""
    return {
        (sample.name, *sample.labels.values()) if sample.labels else sample.name: sample.value
        for metric in metrics
        for sample in metric.samples
    }


def test_jobs_count_by_state_partition_and_account():
    found = values(slurm.jobs(JOBS))
    assert (found["slurm_jobs"], found["slurm_jobs_running"], found["slurm_jobs_pending"]) == (5, 2, 1)
    assert found["slurm_jobs_completed"] == 1
    assert (found["slurm_jobs_cpus_alloc"], found["slurm_jobs_nodes_alloc"]) == (5, 3)
    assert found["slurm_partition_jobs_pending", "gpu"] == 1
    assert found["slurm_partition_jobs_running", "cpu"] == 1
    assert found["slurm_account_jobs_running", "physics"] == 2
    assert found["slurm_account_jobs_running", "biology"] == 0


def test_no_jobs_are_nought():
    assert values(slurm.jobs([]))["slurm_jobs_pending"] == 0


def test_nodes_count_once_and_by_state():
    found = values(slurm.nodes(NODES))
    assert found["slurm_nodes"] == 5
    counts = {name: found[f"slurm_nodes_{name}"] for name in ("mixed", "idle", "drain", "drained", "draining", "down")}
    assert counts == {"mixed": 1, "idle": 1, "drain": 2, "drained": 1, "draining": 1, "down": 1}
    assert found["slurm_nodes_noresp"] == 2
    assert found["slurm_partition_nodes", "cpu"] == 5
    assert (found["slurm_node_cpus_alloc", "c1"], found["slurm_node_cpus_idle", "c1"]) == (3, 5)
    assert found["slurm_node_memory_bytes", "c1"] == 1000 * 2**20


@pytest.mark.parametrize("answer", ["c1", "cpu|c1|idle|many|1"])
def test_answer_of_another_form_is_refused(answer):
    with pytest.raises(ValueError, match=r".+"):
        list(slurm.nodes(answer))


def test_sdiag_is_read_by_section():
    found = values(slurm.scheduler(SDIAG))
    assert found["slurm_server_thread_cnt"] == 3
    assert found["slurm_slurmdbd_queue_size"] == 5
    assert (found["slurm_schedule_cycle_last"], found["slurm_bf_cycle_last"]) == (127, 88)
    assert (found["slurm_schedule_queue_len"], found["slurm_bf_queue_len"]) == (7, 6)
    assert found["slurm_backfilled_jobs"] == 9
    assert found["slurm_sdiag_jobs_submitted"] == 21
    assert "slurm_bf_cycle_max" not in found


def test_empty_answer_of_sdiag_has_no_figures():
    assert list(slurm.scheduler("")) == []
