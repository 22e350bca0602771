from pathlib import Path

import pytest
import yaml

from isthmus.filters.parallelcluster.filters import parallelcluster_names
from isthmus.filters.parallelcluster.queues import node_names
from isthmus.filters.parallelcluster.render import cluster_config, image_script, merged, scripts
from isthmus.filters.provider.inventory import cluster_inventory
from tests.unit.filters.parallelcluster.sites import LARGE, SMALL, small

GOLDEN = Path(__file__).parent / "golden"


@pytest.mark.parametrize(("name", "site"), [("small", SMALL), ("large", LARGE)])
def test_configuration_is_the_golden_one(name, site):
    """After an intended change write the file again, and read the difference."""
    assert cluster_config(site) == yaml.safe_load((GOLDEN / f"{name}.yml").read_text())


def test_queue_of_jobs_that_name_none_is_first():
    queues = cluster_config(LARGE)["Scheduling"]["SlurmQueues"]
    assert [queue["Name"] for queue in queues] == ["batch", "gpu"]


def test_kinds_of_a_partition_keep_their_order():
    queues = cluster_config(LARGE)["Scheduling"]["SlurmQueues"]
    assert [each["Name"] for each in queues[0]["ComputeResources"]] == ["cpu", "bigmem"]


def test_arguments_of_the_head_node_never_change():
    """ParallelCluster makes a new cluster of an update that changes them: no version, no digest."""
    action = cluster_config(SMALL)["HeadNode"]["CustomActions"]["OnNodeConfigured"]
    assert action == {
        "Script": "s3://site-isthmus/isthmus/lab1/bootstrap.sh",
        "Args": ["head", "lab1", "s3://site-isthmus/isthmus/lab1"],
    }


def test_setting_of_the_site_wins():
    slurm = cluster_config(small(slurm={"prologflags": "Alloc,X11", "PlugStackConfig": "omit"}))
    given = slurm["Scheduling"]["SlurmSettings"]["CustomSlurmSettings"]
    assert given == [{"PrologFlags": "Alloc,X11"}]


def test_names_of_nodes_are_slurms():
    found = node_names("cpu", {"partition": "batch", "min": 1, "max": 3})
    assert found == ["batch-st-cpu-1", "batch-dy-cpu-1", "batch-dy-cpu-2"]


def test_every_node_of_the_inventory_is_one_of_the_configuration():
    queues = cluster_config(LARGE)["Scheduling"]["SlurmQueues"]
    resources = [(queue["Name"], each) for queue in queues for each in queue["ComputeResources"]]
    counted = {(queue, each["Name"]): (each["MinCount"], each["MaxCount"]) for queue, each in resources}
    source = {"provider": "parallelcluster", "nodes": LARGE["nodes"], "parallelcluster": {"kinds": LARGE["kinds"]}}
    joining = cluster_inventory(source)["groups"]["joining"]
    assert len(joining) == sum(most for _, most in counted.values()) == 12
    for (queue, name), (least, _) in counted.items():
        assert len([node for node in joining if node.startswith(f"{queue}-st-{name}-")]) == least


def test_merge_goes_into_mappings_alone():
    assert merged({"a": {"b": 1, "c": [1]}, "d": 2}, {"a": {"c": [2]}, "e": 3}) == {
        "a": {"b": 1, "c": [2]},
        "d": 2,
        "e": 3,
    }


def test_prefix_may_have_slashes():
    assert scripts({"bucket": "b", "prefix": "/x/y/"})["script"] == "s3://b/x/y/bootstrap.sh"


def test_image_is_made_by_the_script_of_nodes():
    lines = image_script(SMALL).splitlines()
    assert lines[2] == "aws s3 cp --only-show-errors s3://site-isthmus/isthmus/lab1/bootstrap.sh /tmp/bootstrap.sh"
    assert lines[3] == "bash /tmp/bootstrap.sh image lab1 s3://site-isthmus/isthmus/lab1"


def test_scripts_of_the_site_are_named_as_they_must_be_there_before():
    """Ours are brought by the run itself; ParallelCluster takes others by HTTPS, too, and several in a sequence."""
    more = [{"Script": "s3://site-scripts/a.sh"}, {"Script": "https://example.org/b.sh"}]
    more += [{"Script": "s3://site-isthmus/isthmus/lab1/bootstrap.sh"}, more[0]]
    head = SMALL["head"] | {"settings": {"CustomActions": {"OnNodeStart": {"Sequence": more}}}}
    assert parallelcluster_names(small(head=head))["objects"] == ["s3://site-scripts/a.sh"]
    assert parallelcluster_names(LARGE)["objects"] == []
