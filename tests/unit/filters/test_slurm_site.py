"""From the inventory to Slurm's configuration, and what an adopted Slurm must have."""

import pytest

from isthmus.filters.errors import InputError
from isthmus.filters.slurm import site as slurm_site

DECLARED = {"base_address": "10.0.0.1", "slurm_node": {"cpus": 4, "memory_mib": 4096}}
FACTS = {"base_address": "10.0.0.2", "ansible_facts": {"processor_vcpus": 2, "memtotal_mb": 8192}}
UNKNOWN = {"base_address": "10.0.0.3"}
GOOD = "PrologFlags = Alloc,Contain\nProlog[0]  = /opt/slurm/etc/prolog.d/*\nPlugStackConfig = /opt/p\n"


def test_compute_takes_declared_hardware_and_facts():
    hosts = slurm_site.slurm_compute(["c1", "c2"], {"c1": DECLARED, "c2": FACTS})
    assert [(host["name"], host["address"], host["cpus"]) for host in hosts] == [
        ("c1", "10.0.0.1", 4),
        ("c2", "10.0.0.2", 2),
    ]


def test_compute_refuses_unknown_hardware_with_remedies():
    with pytest.raises(InputError, match=r"c3: nobody knows cpus.*; start c3, declare its slurm_node"):
        slurm_site.slurm_compute(["c3"], {"c3": UNKNOWN})


def test_undeclared_names_nodes_that_need_facts():
    hostvars = {"c1": DECLARED, "c2": FACTS, "c3": UNKNOWN, "c4": {**UNKNOWN, "slurm_node": {"cpus": 4}}}
    assert slurm_site.slurm_undeclared(hostvars, hostvars) == ["c3", "c4"]


def test_fair_memory_is_that_of_the_poorest_node():
    assert slurm_site.slurm_fair_memory([{"cpus": 4, "memory_mib": 4096}, {"cpus": 32, "memory_mib": 8192}]) == 256


@pytest.mark.parametrize(("user", "state"), [({}, "present"), ({"state": "absent"}, "absent")])
def test_users_share_one_account(user, state):
    expected = [{"name": "alice", "account": "users", "state": state}]
    assert slurm_site.slurm_users_of([{"name": "alice", "uid": 2001, **user}], "users") == expected


@pytest.mark.parametrize(
    ("qos", "jobs_max", "expected"),
    [
        ([], 1000, [{"name": "normal", "limits": {"MaxSubmitJobsPerUser": 1000}}]),
        ([], 0, []),
        (
            [{"name": "long", "priority": 1}],
            10,
            [{"name": "long", "priority": 1}, {"name": "normal", "limits": {"MaxSubmitJobsPerUser": 10}}],
        ),
        (
            [{"name": "Normal", "limits": {"MaxWall": 60}}],
            10,
            [{"name": "Normal", "limits": {"MaxSubmitJobsPerUser": 10, "MaxWall": 60}}],
        ),
        (
            [{"name": "normal", "limits": {"MaxSubmitJobsPerUser": -1}}],
            10,
            [{"name": "normal", "limits": {"MaxSubmitJobsPerUser": -1}}],
        ),
    ],
)
def test_jobs_of_a_user_are_bounded_unless_the_inventory_says_otherwise(qos, jobs_max, expected):
    assert slurm_site.slurm_qos_bounded(qos, jobs_max) == expected


def test_missing_reports_the_remedy():
    assert slurm_site.slurm_missing({"path": "/x", "remedy": "install it"}) == "/x is missing; install it"


def test_adoption_takes_a_good_slurm():
    assert slurm_site.slurm_adopt_problems(["slurm 24.11.5", GOOD], "/opt/slurm/etc") == []


@pytest.mark.parametrize(
    ("version", "config", "words"),
    [
        ("slurm 22.05.8", GOOD, "upgrade it to 23.11"),
        ("nonsense", GOOD, "upgrade it to 23.11"),
        (
            "slurm 24.11.5",
            GOOD.replace("Alloc,Contain", "(null)"),
            "set PrologFlags=Contain in /opt/slurm/etc/slurm.conf",
        ),
        ("slurm 24.11.5", GOOD.replace("/opt/slurm/etc/prolog.d/*", "(null)"), "set Prolog=/opt/slurm/etc/prolog.d/*"),
        ("slurm 24.11.5", GOOD.replace("/opt/p", "(null)"), "set it to /opt/slurm/etc/plugstack.conf"),
    ],
)
def test_adoption_refuses_with_the_remedy(version, config, words):
    (problem,) = slurm_site.slurm_adopt_problems([version, config], "/opt/slurm/etc")
    assert words in problem
