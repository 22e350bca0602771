"""A site's own files, priorities and purges: right ones in Slurm's words, wrong ones refused with the remedy."""

import pytest

from isthmus.filters.errors import InputError
from isthmus.filters.slurm.choices import slurm_health, slurm_priority, slurm_purge, slurm_site_files

FILES = {"topology.conf": "SwitchName=s1 Nodes=c1", "job_submit.lua": "", "plugstack.conf.d/site.conf": "# none\n"}


def test_files_go_to_the_controller_or_everywhere():
    assert slurm_site_files(FILES, everywhere=False) == [
        {"path": "/etc/slurm/topology.conf", "content": "SwitchName=s1 Nodes=c1\n"},
        {"path": "/etc/slurm/job_submit.lua", "state": "absent"},
    ]
    assert slurm_site_files(FILES, everywhere=True) == [
        {"path": "/etc/slurm/plugstack.conf.d/site.conf", "content": "# none\n"}
    ]


@pytest.mark.parametrize(
    "name",
    [
        "slurm.conf",
        "nodes.conf",
        "slurmdbd.conf",
        "../topology.conf",
        "/etc/topology.conf",
        "plugstack.conf.d/../slurm.conf",
        "plugstack.conf.d/isthmus-network.conf",
        "plugstack.conf.d/.hidden.conf",
        "plugstack.conf.d/a/b.conf",
        "topology.conf\n",
        "",
    ],
)
@pytest.mark.parametrize("everywhere", [True, False])
def test_other_names_are_refused(name, everywhere):
    with pytest.raises(InputError, match=r"slurm_conf_files has .*; name one of acct_gather.conf"):
        slurm_site_files({name: "x"}, everywhere=everywhere)


def test_priorities_are_slurms_settings():
    assert slurm_priority({"fairshare": 10, "qos": 0}) == {"PriorityWeightFairshare": 10, "PriorityWeightQOS": 0}
    assert slurm_priority({}) == {}


@pytest.mark.parametrize(
    ("weights", "words"),
    [
        ({"fair": 1}, "has 'fair'; name some of age"),
        ({"age": -1}, "age is -1; give a whole number"),
        ({"age": 2**32}, "give a whole number to 4294967295"),
        ({"age": True}, "age is True"),
        ({"age": "10"}, "age is '10'"),
    ],
)
def test_wrong_weights_are_refused(weights, words):
    with pytest.raises(InputError, match=words):
        slurm_priority(weights)


def test_purges_are_slurmdbds_settings():
    assert slurm_purge({"job": "24months", "txn": "90days"}) == {"PurgeJobAfter": "24months", "PurgeTXNAfter": "90days"}


@pytest.mark.parametrize(
    ("after", "words"),
    [
        ({"jobs": "1days"}, "has 'jobs'; name some of event"),
        ({"job": "2 years"}, "job is '2 years'; write e.g. 24months"),
        ({"job": "0days"}, "write e.g. 24months"),
        ({"job": 12}, "write e.g. 24months"),
    ],
)
def test_wrong_purges_are_refused(after, words):
    with pytest.raises(InputError, match=words):
        slurm_purge(after)


def test_health_is_slurms_settings():
    assert slurm_health("/opt/nhc", 600) == {
        "HealthCheckProgram": "/opt/nhc",
        "HealthCheckInterval": 600,
        "HealthCheckNodeState": "ANY,CYCLE",
    }
    assert slurm_health("", 600) == {}


@pytest.mark.parametrize(
    ("program", "interval_s", "words"),
    [
        ("nhc", 300, "slurm_health_program is 'nhc'; give its absolute path"),
        ("/opt/nhc -v", 300, "without arguments"),
        (["/opt/nhc"], 300, "give its absolute path"),
        ("/opt/nhc", 59, "seconds from 60"),
        ("/opt/nhc", 65534, "to 65533"),
        ("/opt/nhc", True, "slurm_health_interval_s is True"),
        ("/opt/nhc", "300", "slurm_health_interval_s is '300'"),
    ],
)
def test_wrong_health_is_refused(program, interval_s, words):
    with pytest.raises(InputError, match=words):
        slurm_health(program, interval_s)
