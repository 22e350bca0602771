"""In a real account, which costs money: only where ISTHMUS_LIVE_AWS names an inventory.

Its cluster_name begins with isthmus-live, and no such stack is there: what this makes it deletes, whatever happens, and
then looks by tag for what is left. Types of machines are the inventory's; the smallest are enough.
"""

import json
import os
import subprocess
import time

import pytest

from tests.support.clusters import playbooks
from tests.support.clusters.cluster import BIN, ROOT
from tests.support.parallelcluster.venvs import venv
from tests.support.wait import wait

INVENTORY = os.environ.get("ISTHMUS_LIVE_AWS", "")
PREFIX = "isthmus-live"
# Stacks of this name, and what bears the tag but for instances that have ended and are listed for an hour.
LOOK = """
import boto3, json, sys
region, name = sys.argv[1:]
cloud, ec2, tags = (boto3.client(each, region) for each in ("cloudformation", "ec2", "resourcegroupstaggingapi"))
stacks = [each["StackName"] for page in cloud.get_paginator("list_stacks").paginate() for each in page["StackSummaries"]
          if each["StackName"] == name and each["StackStatus"] != "DELETE_COMPLETE"]
wanted = [{"Key": "isthmus:cluster", "Values": [name]}]
found = [each["ResourceARN"] for page in tags.get_paginator("get_resources").paginate(TagFilters=wanted)
         for each in page["ResourceTagMappingList"]]
ended = [one["InstanceId"] for page in ec2.get_paginator("describe_instances").paginate(
         Filters=[{"Name": "instance-state-name", "Values": ["terminated", "shutting-down"]}])
         for each in page["Reservations"] for one in each["Instances"]]
left = [each for each in found if each.rpartition("/")[2] not in ended]
print(json.dumps({"stacks": stacks, "left": left}))
"""

pytestmark = pytest.mark.skipif(not INVENTORY, reason="ISTHMUS_LIVE_AWS names no inventory; this makes a real cluster")


@pytest.fixture(scope="module")
def variables():
    command = [BIN / "ansible-inventory", "-i", INVENTORY, "--list"]
    reported = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=60)
    every = json.loads(reported.stdout)
    return every["_meta"]["hostvars"][every["controller"]["hosts"][0]]


@pytest.fixture(scope="module")
def look(variables):
    def run():
        command = [venv("parallelcluster") / "bin/python", "-c", LOOK, variables["provider_parallelcluster_region"]]
        reported = subprocess.run(
            [*command, variables["cluster_name"]], capture_output=True, text=True, check=True, timeout=300
        )
        return json.loads(reported.stdout)

    return run


@pytest.fixture(scope="module")
def made(variables, look):
    """The cluster; it is deleted whatever happens."""
    assert variables["cluster_name"].startswith(PREFIX), f"cluster_name must begin with {PREFIX}"
    assert look() == {"stacks": [], "left": []}, "something of this name is there already"
    try:
        yield playbooks.run("live_site", "ansible-playbook", "-i", INVENTORY, "site.yml")
    finally:
        gone = playbooks.run("live_teardown", "ansible-playbook", "-i", INVENTORY, "playbooks/teardown.yml")
        assert gone.rc == 0, "delete the stack by hand, NOW"
        # Tags of what is gone are listed for some minutes.
        wait(look, lambda reported: reported == {"stacks": [], "left": []}, timeout_s=1800, interval_s=30)


def test_site_is_deployed(made):
    assert made.rc == 0


def test_job_has_a_pod_network(made, variables):
    """A node is started for it, joins, and runs it."""
    user = variables["base_users"][0]["name"]
    command = f"timeout 1500 su - {user} -c 'srun --pod-network ip -4 -br address'"
    words = ("ansible", "-i", INVENTORY, "controller", "-m", "ansible.builtin.command", "-a", command)
    began = time.monotonic()
    reported = playbooks.run("live_job", *words)
    print(f"the first job took {time.monotonic() - began:.0f} s, a node's start among it")
    assert reported.rc == 0


def test_second_run_changes_nothing(made):
    again = playbooks.run("live_again", "ansible-playbook", "-i", INVENTORY, "site.yml")
    assert again.rc == 0
    assert not again.changed
