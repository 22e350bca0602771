import pytest

from isthmus.filters.parallelcluster.problems import problems
from tests.unit.filters.parallelcluster.sites import LARGE, OTHER, SECRET, SMALL, large, small

CPU = {"instance_types": ["t3.small"]}
DATABASE = {"uri": "db:3306", "user": "slurm", "password_secret": SECRET}
NODES = SMALL["nodes"]
WITH_LOGIN = {**NODES, "login": {"group": "login"}}
LOGIN = {"instance_type": "t3.small", "policy": "arn"}
MANY = {f"k{letter}{other}": {"group": "compute"} for letter in "abcdefgh" for other in "abcdefg"}


def named(name):
    """A site whose one kind has another name."""
    return small(nodes={"ctl": NODES["ctl"], name: NODES["cpu"]}, kinds={name: CPU})


BAD = [
    (small(region=""), "provider_parallelcluster_region not set"),
    (small(kinds={}, key_name=""), "provider_parallelcluster_key_name, provider_parallelcluster_kinds not set"),
    (small(managed=True), "slurm_manage is true"),
    (small(cluster="1lab"), "'1lab' cannot be a ParallelCluster's; use at most 60"),
    (small(cluster="a" * 41, database=DATABASE), "use at most 40"),
    (small(bucket="s3://mine"), "without s3://"),
    (small(timeout_s=3600), "write seconds from 300 to 2100"),
    (small(head={"instance_type": "t3.medium", "subnet": "10.0.0.0/24"}), "provider_parallelcluster_head has subnet"),
    (small(login=LOGIN), "`nodes` has 0 login nodes, and provider_parallelcluster_login is set"),
    (small(nodes=WITH_LOGIN), "`nodes` has 1 login nodes, and provider_parallelcluster_login is empty"),
    (small(nodes=WITH_LOGIN, login={"instance_type": "t3.small"}), "provider_parallelcluster_login has no policy"),
    (small(nodes=WITH_LOGIN, login={**LOGIN, "subnet": "x"}), "login has subnet 'x'"),
    (small(head={"instance_type": "t3.medium"}), "provider_parallelcluster_head has no subnet"),
    (small(directory={"domain": "dc=x"}), "provider_parallelcluster_directory has no servers, user, password_secret"),
    (small(database={"uri": "db:3306"}), "provider_parallelcluster_database has no user, password_secret"),
    (small(kinds={"cpu": {**CPU, "subnets": ["x"]}}), "provider_parallelcluster_kinds has subnet 'x'"),
    (small(kinds={"cpus": CPU}), "unknown kind of compute node: 'cpus'; did you mean 'cpu'"),
    (small(nodes={"ctl": NODES["ctl"]}), "no kind of node has group compute"),
    (named("a-st-b"), "without st or dy as a word"),
    (named("dy"), "without st or dy as a word"),
    (named("a" * 26), "use at most 25"),
    (small(kinds={"cpu": {"min": 1}}), "kind cpu has no instance_types"),
    (small(kinds={"cpu": {**CPU, "min": 3}}), "kind cpu has min 3 of 2 nodes"),
    (small(partitions=[{"name": "batch", "nodes": ["cpus"]}]), "unknown kind of nodes of partition batch: 'cpus'"),
    (small(partitions=[{"name": "batch", "nodes": ["cpu"], "state": "DOWN"}]), "partition batch has a state"),
    (
        small(partitions=[{"name": "batch", "nodes": ["cpu"]}, {"name": "b", "nodes": ["compute"]}]),
        "partition b has nodes cpu, and is the partition of no kind",
    ),
    (
        large(partitions=[{**each, "default": True} for each in LARGE["partitions"]]),
        "partitions gpu and batch are both default",
    ),
    (
        large(kinds={**LARGE["kinds"], "bigmem": {**LARGE["kinds"]["bigmem"], "spot": True}}),
        "partition batch has kinds with and without spot",
    ),
    (small(nodes={**NODES, **MANY}, kinds=dict.fromkeys(["cpu", *MANY], CPU)), "1 partitions with 57 kinds"),
    (small(slurm={"Prolog": "/x"}), "refuses Prolog of Slurm; put a script into /opt/slurm/etc/scripts/prolog.d"),
    (small(slurm={"suspendTIME": 60}), "refuses suspendTIME of Slurm"),
    (small(slurm={"JobAcctGatherType": "x"}, database=DATABASE), "use provider_parallelcluster_database"),
    (small(slurm={"SlurmdTimeout": 1, "slurmdtimeout": 2}), "are the same key to Slurm"),
    (small(slurm={"Bad Key": 1}), "is no key of a Slurm file"),
    (small(slurm={"PrologFlags": "X11"}), "has neither Alloc nor Contain"),
    (
        small(partitions=[{"name": "batch", "nodes": ["cpu"], "options": {"OverSubscribe": "NO"}}]),
        "refuses OverSubscribe",
    ),
    (small(kinds={"cpu": {**CPU, "settings": {"CustomSlurmSettings": {"Gres": "gpu:1"}}}}), "refuses Gres of Slurm"),
]


@pytest.mark.parametrize(("site", "words"), BAD, ids=[words for _, words in BAD])
def test_bad_site_is_refused_with_its_remedy(site, words):
    found = [str(each.error) for each in problems(site)]
    assert len(found) == 1, found
    assert words in found[0]
    assert "; " in found[0]


def test_partition_that_is_none_of_the_kinds_is_reported_from_both_sides():
    site = small(kinds={"cpu": {**CPU, "partition": "fast"}}, partitions=[{"name": "fast_1", "nodes": ["cpu"]}])
    found = [str(each.error) for each in problems(site)]
    assert len(found) == 3
    assert "partition 'fast_1' cannot be part of a node's name" in found[0]
    assert "partition fast_1 has nodes cpu, and is the partition of no kind" in found[1]
    assert "kind cpu is of partition 'fast', which is none of slurm_partitions; name one of fast_1" in found[2]


@pytest.mark.parametrize("site", [SMALL, LARGE, small(slurm={"JobAcctGatherType": "x"})])
def test_right_site_has_no_problem(site):
    assert not list(problems(site))


def test_place_of_a_setting_is_its_key():
    assert next(problems(small(slurm={"Epilog": "/x"}))).keys == ("Epilog", "slurm_conf_extra")


def test_every_subnet_is_looked_at():
    kinds = {"cpu": {**CPU, "subnets": [OTHER, "x", "y"]}}
    assert len(list(problems(small(kinds=kinds)))) == 2
