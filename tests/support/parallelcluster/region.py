"""A region of the stand-in for AWS, with what a site must have before ParallelCluster begins."""

import json
import os
import subprocess
import time
from contextlib import contextmanager
from pathlib import Path

import requests

from tests.support.parallelcluster.venvs import venv
from tests.support.servers.etcd import free_port

AWS = Path(__file__).with_name("aws.py")
IMAGE = "aws-parallelcluster-3.16.1-ubuntu-2404-lts-hvm-x86_64-202601010000"
NAMES = {
    "AWS_DEFAULT_REGION": "us-east-1",
    "AWS_ACCESS_KEY_ID": "testing",
    "AWS_SECRET_ACCESS_KEY": "testing",
    "AWS_EC2_METADATA_DISABLED": "true",
}
# Makes network, key pair and buckets; prints their ids. Run in ParallelCluster's venv, which has boto3.
SEED = """
import boto3, json
ec2, s3, secrets = (boto3.client(name) for name in ("ec2", "s3", "secretsmanager"))
vpc = ec2.create_vpc(CidrBlock="10.20.0.0/16")["Vpc"]["VpcId"]
for name in ("EnableDnsSupport", "EnableDnsHostnames"):
    ec2.modify_vpc_attribute(VpcId=vpc, **{name: {"Value": True}})
gateway = ec2.create_internet_gateway()["InternetGateway"]["InternetGatewayId"]
ec2.attach_internet_gateway(InternetGatewayId=gateway, VpcId=vpc)
subnets = [ec2.create_subnet(VpcId=vpc, CidrBlock=f"10.20.{n}.0/24")["Subnet"]["SubnetId"] for n in range(2)]
table = ec2.create_route_table(VpcId=vpc)["RouteTable"]["RouteTableId"]
ec2.create_route(RouteTableId=table, DestinationCidrBlock="0.0.0.0/0", GatewayId=gateway)
ec2.associate_route_table(RouteTableId=table, SubnetId=subnets[0])
ec2.create_key_pair(KeyName="admin", KeyType="ed25519")
for bucket in ("site-isthmus", "pc-artifacts"):
    s3.create_bucket(Bucket=bucket)
s3.put_bucket_versioning(Bucket="pc-artifacts", VersioningConfiguration={"Status": "Enabled"})
secret = secrets.create_secret(Name="db", SecretString="x")["ARN"]
print(json.dumps({"subnets": subnets, "secret": secret}))
"""


class Region:
    """What tests ask of it.

    Attributes:
        environment: by which programs find it.
    """

    def __init__(self, port, folder):
        self.url, self.folder = f"http://127.0.0.1:{port}", folder
        self.environment = {**os.environ, **NAMES, "AWS_ENDPOINT_URL": self.url, "HOME": str(folder)}

    def ask(self, code):
        """Run Python with boto3 there, and return the JSON that it prints."""
        command = [venv("parallelcluster") / "bin/python", "-c", code]
        run = subprocess.run(command, env=self.environment, capture_output=True, text=True, timeout=60, check=False)
        assert run.returncode == 0, run.stderr
        return json.loads(run.stdout)


@contextmanager
def region(folder, without=""):
    """Serve a region, with all repairs but one."""
    images = [
        {"ami_id": "ami-0123456789abcdef0", "name": IMAGE, "architecture": "x86_64", "owner_id": "247102896272"}
        | {"public": True, "virtualization_type": "hvm", "hypervisor": "xen", "platform": None, "state": "available"}
        | {"description": "", "image_type": "machine", "root_device_name": "/dev/sda1", "root_device_type": "ebs"}
    ]
    (folder / "amis.json").write_text(json.dumps(images))
    port = free_port()
    environment = {**os.environ, "MOTO_AMIS_PATH": str(folder / "amis.json")}
    command = [venv("moto") / "bin/python", AWS, str(port), without]
    with (
        (folder / "aws.log").open("w") as log,
        subprocess.Popen(command, env=environment, stdout=log, stderr=log) as server,
    ):
        try:
            found = Region(port, folder)
            _answers(found, server)
            found.seeded = found.ask(SEED)
            yield found
        finally:
            server.terminate()


def _answers(found, server):
    end = time.monotonic() + 120
    while True:
        assert server.poll() is None, (found.folder / "aws.log").read_text()
        try:
            return requests.get(f"{found.url}/moto-api/", timeout=5)
        except requests.ConnectionError:
            assert time.monotonic() < end, "moto did not start"
            time.sleep(0.2)
