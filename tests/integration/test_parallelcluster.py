"""The provider against a stand-in for AWS: ParallelCluster's library, its templates and CloudFormation are real calls.

The tests of this file are one life of a cluster, in order. What the stand-in cannot show is said in
docs/admins/parallelcluster.md.
"""

import json
import os
import subprocess
from pathlib import Path

import pytest
import yaml

from tests.support.clusters.cluster import BIN, ROOT
from tests.support.clusters.playbooks import COLOR, RECAP
from tests.support.parallelcluster.region import region

# Launch templates that the stand-in cannot try out.
SUPPRESSED = ["type:HeadNodeLaunchTemplateValidator", "type:ComputeResourceLaunchTemplateValidator"]
EXTRA = {"_provider_parallelcluster_suppressed": SUPPRESSED, "_provider_parallelcluster_poll_s": 0.2}
# Nodes that the stand-in does not start cannot be reached.
EXTRA |= {"provider_nodes": "localhost"}
SITE = {
    "cluster_name": "lab1",
    "slurm_manage": False,
    "slurm_prefix": "/opt/slurm",
    "slurm_conf_dir": "/opt/slurm/etc",
    "base_hosts_manage": False,
    "join_service": True,
}
SETTINGS = {"CustomS3Bucket": "pc-artifacts", "Monitoring": {"Alarms": {"Enabled": False}}}
TEMPLATE = """
import boto3, json
s3 = boto3.client("s3")
found = [each["Key"] for each in s3.list_objects_v2(Bucket="pc-artifacts")["Contents"]]
key = next(each for each in found if each.endswith("aws-parallelcluster.cfn.yaml"))
print(json.dumps(s3.get_object(Bucket="pc-artifacts", Key=key)["Body"].read().decode()))
"""
OBJECTS = """
import boto3, json
reported = boto3.client("s3").list_objects_v2(Bucket="site-isthmus").get("Contents", [])
print(json.dumps([each["Key"] for each in reported]))
"""
# What the head node does in reality: it starts a static node, and writes its name and the fleet's state down.
FLEET = """
import boto3, json
ec2, table = boto3.client("ec2"), boto3.client("dynamodb")
template = ec2.describe_launch_templates()["LaunchTemplates"]
name = next(each["LaunchTemplateName"] for each in template if "cpu" in each["LaunchTemplateName"])
given = {"LaunchTemplateSpecification": {"LaunchTemplateName": name, "Version": "$Latest"}}
made = ec2.create_fleet(Type="instant", LaunchTemplateConfigs=[given], TargetCapacitySpecification={
    "TotalTargetCapacity": 1, "DefaultTargetCapacityType": "on-demand"})
instance = made["Instances"][0]["InstanceIds"][0]
node = {"Id": {"S": "batch-st-cpu-1"}, "InstanceId": {"S": instance}}
table.put_item(TableName="parallelcluster-slurm-lab1", Item=node)
data = {"status": {"S": "STATE"}, "lastStatusUpdatedTime": {"S": "2026-01-01T00:00:00.000+00:00"}}
table.put_item(TableName="parallelcluster-lab1", Item={"Id": {"S": "COMPUTE_FLEET"}, "Data": {"M": data}})
print(json.dumps(instance))
"""


class Lab:
    """One site, and its region."""

    def __init__(self, aws, folder):
        self.aws, self.folder, self.state = aws, folder, folder / "state"
        self.subnets = aws.seeded["subnets"]
        self.settings = {
            "region": "us-east-1",
            "key_name": "admin",
            "bucket": "site-isthmus",
            "head": {"instance_type": "t3.medium", "subnet": self.subnets[0]},
            "kinds": {"cpu": {"instance_types": ["t3.small"], "min": 1, "subnets": [self.subnets[1]]}},
            "settings": SETTINGS,
        }
        variables = folder / "site/group_vars/all"
        variables.mkdir(parents=True)
        (folder / "site/groups.yml").symlink_to(ROOT / "inventories/common/groups.yml")
        (variables / "00_common").symlink_to(ROOT / "inventories/common/group_vars/all")
        connection = "group_vars/provider_parallelcluster"
        (folder / "site" / connection).symlink_to(ROOT / "inventories/parallelcluster" / connection)
        (variables / "site.yml").write_text(json.dumps({**SITE, "cluster_state_dir": str(self.state)}))

    def run(self, playbook, *arguments, count=2, environment=None, **settings):
        """Run a playbook on the site with these settings; return its output and what changed on the deployer."""
        nodes = {"ctl": {"group": "controller"}, "cpu": {"group": "compute", "count": count}}
        inventory = {"plugin": "cluster_nodes", "provider": "parallelcluster", "nodes": nodes}
        inventory["parallelcluster"] = {**self.settings, **settings}
        (self.folder / "site/cluster.yml").write_text(json.dumps(inventory))
        variables = {**self.aws.environment, "HOME": os.environ["HOME"], **(environment or {})}
        command = [BIN / "ansible-playbook", "-i", self.folder / "site", playbook, "-e", json.dumps(EXTRA), *arguments]
        reported = subprocess.run(
            command, cwd=ROOT, env=variables, capture_output=True, text=True, timeout=900, check=False
        )
        output = COLOR.sub("", reported.stdout + reported.stderr)
        recap = {host: int(changed) for host, changed, _, _ in RECAP.findall(output)}
        return reported.returncode, output, recap.get("localhost", 0)

    def succeed(self, *arguments, **settings):
        """Run the playbook that makes the cluster; it must succeed."""
        rc, output, changed = self.run("playbooks/create.yml", *arguments, **settings)
        assert rc == 0, output[-4000:]
        return output, changed

    def refused(self, *arguments, **settings):
        """Run it; it must fail, and change nothing."""
        rc, output, changed = self.run("playbooks/create.yml", *arguments, **settings)
        assert rc != 0
        assert changed == 0, output[-4000:]
        return output

    def record(self):
        """What the last run wrote down."""
        return json.loads((self.state / "parallelcluster.json").read_text())


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    folder = tmp_path_factory.mktemp("aws")
    with region(folder) as aws:
        yield Lab(aws, folder)


@pytest.fixture(scope="module")
def made(lab):
    """The cluster, made once."""
    lab.succeed()
    return lab


NOWHERE = {"instance_type": "t3.medium", "subnet": f"subnet-{'0' * 17}"}
LACKING = {"Script": "s3://site-isthmus/mine/start.sh"}
BAD = {
    "names of nothing": (
        {"bucket": "nobody-has-it", "head": NOWHERE},
        [f"subnet {NOWHERE['subnet']} of us-east-1 cannot be read", "bucket nobody-has-it of us-east-1 cannot be read"],
    ),
    "scripts of nothing": (
        {"settings": {**SETTINGS, "HeadNode": {"CustomActions": {"OnNodeStart": LACKING}}}},
        ["object s3://site-isthmus/mine/start.sh of us-east-1 cannot be read", "make it, or correct its name"],
    ),
    "unknown setting": ({"settings": {**SETTINGS, "HeadNod": {}}}, ["HeadNod: Unknown field"]),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_site_is_refused_before_anything_is_made(lab, case):
    settings, words = BAD[case]
    output = lab.refused(**settings)
    assert not [each for each in words if each not in output]
    assert lab.aws.ask(OBJECTS) == []


def test_check_of_a_new_cluster_makes_nothing(lab):
    lab.succeed("--check")
    assert lab.aws.ask(OBJECTS) == []
    assert not lab.state.exists()


def test_cluster_is_made_and_described(made):
    reported = made.record()
    assert reported["state"] == "CREATE_COMPLETE"
    assert [each["role"] for each in reported["instances"]] == ["head"]
    assert (made.state / "parallelcluster.json").stat().st_mode & 0o777 == 0o600


def test_template_is_what_was_asked_for(made):
    """The genuine template, which AWS would have got."""
    text = made.aws.ask(TEMPLATE)
    resources = yaml.safe_load(text)["Resources"]
    waits = [each for each in resources.values() if each["Type"] == "AWS::CloudFormation::WaitCondition"]
    assert [str(each["Properties"]["Timeout"]) for each in waits] == ["2100"]
    assert "isthmus:cluster" in text
    policies = json.dumps([each for each in resources.values() if each["Type"] == "AWS::IAM::Policy"])
    assert "site-isthmus/isthmus/lab1/*" in policies


def test_bucket_has_script_and_archive_by_digest(made):
    keys = made.aws.ask(OBJECTS)
    archives = [key for key in keys if key.startswith("isthmus/lab1/content/")]
    assert len(archives) == 1
    own = {f"isthmus/lab1/{name}" for name in ("bootstrap.sh", "image.sh", "current")}
    assert {*keys} == {*own, *archives}


def test_second_run_changes_nothing_and_finds_a_static_node_by_slurms_name(made):
    made.aws.ask(FLEET.replace("STATE", "RUNNING"))
    assert made.succeed()[1] == 0
    node = next(each for each in made.record()["instances"] if each["role"] == "compute")
    assert (node["node"], node["queue"]) == ("batch-st-cpu-1", "batch")


def test_check_reports_what_a_change_needs(made):
    output, _ = made.succeed("--check", count=4)
    assert "ComputeResources[cpu].MaxCount: 2 -> 4 (live)" in output
    assert made.record()["state"] == "CREATE_COMPLETE"


@pytest.mark.parametrize("arguments", [["--check"], []], ids=["check", "run"])
def test_change_of_the_head_node_is_refused(made, arguments):
    output = made.refused(*arguments, head={"instance_type": "t3.large", "subnet": made.subnets[0]})
    assert "HeadNode.InstanceType: t3.medium -> t3.large (new cluster)" in output


def test_change_that_stops_the_fleet_is_refused_without_leave(made):
    output = made.refused(idle_min=5)
    assert "(fleet stop)" in output
    assert "allow it by provider_parallelcluster_stop" in output


def test_live_change_is_made(made):
    assert made.succeed(count=4)[1] > 0
    assert made.record()["state"] == "UPDATE_COMPLETE"


def test_protected_fleet_is_reported_at_once(made):
    made.aws.ask(FLEET.replace("STATE", "PROTECTED"))
    rc, output, _ = made.run("playbooks/create.yml", count=4)
    assert rc != 0
    assert "the fleet of lab1 is PROTECTED" in output


def test_teardown_leaves_nothing_and_is_safe_to_repeat(made):
    rc, output, changed = made.run("playbooks/teardown.yml")
    assert rc == 0, output[-4000:]
    assert changed
    assert made.aws.ask(OBJECTS) == []
    assert not Path(made.state).exists()
    assert made.run("playbooks/teardown.yml")[2] == 0
