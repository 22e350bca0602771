"""Runs in moto's venv: prints for each repair in aws.py what moto does with and without it."""

import json

import boto3
from aws import NAMES, REPAIRS
from moto import mock_aws

INNER = {"Resources": {"Topic": {"Type": "AWS::SNS::Topic"}}, "Outputs": {"One": {"Value": "1"}}}
NESTED = {
    "Resources": {
        "Inner": {
            "Type": "AWS::CloudFormation::Stack",
            "Properties": {"TemplateURL": "https://s3.amazonaws.com/bucket/inner"},
        },
        "Topic": {"Type": "AWS::SNS::Topic", "Properties": {"TopicName": {"Fn::GetAtt": ["Inner", "Outputs.One"]}}},
    }
}
LAUNCHED = {
    "Resources": {
        "Template": {
            "Type": "AWS::EC2::LaunchTemplate",
            "Properties": {"LaunchTemplateData": {"ImageId": "ami-12c6146b", "InstanceType": "t3.small"}},
        },
        "Instance": {
            "Type": "AWS::EC2::Instance",
            "Properties": {"LaunchTemplate": {"LaunchTemplateId": {"Ref": "Template"}, "Version": "1"}},
        },
    }
}
UNKNOWN = {"Resources": {"Topic": {"Type": "AWS::SNS::Topic"}, "Alarm": {"Type": "AWS::CloudFormation::WaitCondition"}}}


def make(template):
    """Make a stack; list its resources."""
    s3, cloud = boto3.client("s3"), boto3.client("cloudformation")
    s3.create_bucket(Bucket="bucket")
    s3.put_object(Bucket="bucket", Key="inner", Body=json.dumps(INNER))
    cloud.create_stack(StackName="s", TemplateBody=json.dumps(template))
    listed = cloud.describe_stack_resources(StackName="s")["StackResources"]
    assert all("LogicalResourceId" in each for each in listed), f"a resource without a name: {listed}"
    stack = cloud.describe_stacks(StackName="s")["Stacks"][0]
    assert stack["StackStatus"] == "CREATE_COMPLETE"
    if template is LAUNCHED:
        found = boto3.client("ec2").describe_instances()["Reservations"][0]["Instances"][0]
        assert found["InstanceType"] == "t3.small", f"an instance of {found['InstanceType']}"


def tried(template):
    """What went wrong; "" for nothing."""
    with mock_aws():
        try:
            make(template)
        except Exception as error:
            return repr(error)[:300]
    return ""


def main():
    """Try each without, then with its repair."""
    reported = {}
    for name, template in zip(NAMES, (NESTED, LAUNCHED, UNKNOWN), strict=True):
        reported[name] = {"without": tried(template)}
        REPAIRS[name]()
        reported[name]["with"] = tried(template)
    print(json.dumps(reported))


if __name__ == "__main__":
    main()
