import json

import pytest

from tests.support.clusters import playbooks

# What is wrong, as extra variables, and what the message names.
BAD = {
    "unknown_variable": ({"slurm_partition": []}, "slurm_partition"),
    "unknown_node": ({"slurm_partitions": [{"name": "batch", "nodes": ["c99"]}]}, "c99"),
    "bad_user": ({"base_users": [{"name": "Not Posix", "uid": 3000}]}, "Not Posix"),
    "bad_time": ({"slurm_partitions": [{"name": "batch", "nodes": ["compute"], "max_time": "soon"}]}, "soon"),
}


@pytest.mark.parametrize("kind", BAD)
def test_bad_input_is_refused_before_any_change(kind, controller):
    variables, named = BAD[kind]
    before = controller.output("sha256sum /etc/slurm/*.conf /etc/passwd")
    refused = playbooks.play(f"refused_{kind}", "site.yml", "-e", json.dumps(variables))
    assert refused.rc != 0
    assert named in refused.output
    assert not refused.changed
    assert set(refused.recap) <= {"localhost", controller.name}
    assert controller.output("sha256sum /etc/slurm/*.conf /etc/passwd") == before


def test_more_memory_than_the_node_has_is_refused(controller, computes):
    variables = {"slurm_conf_extra": {}, "slurm_node": {"cpus": 1, "memory_mib": 2**30}}
    refused = playbooks.play("refused_memory", "playbooks/slurm.yml", "-e", json.dumps(variables))
    assert refused.rc != 0
    assert "lower slurm_node.memory_mib" in refused.output
    assert not refused.changed
