"""A stand-in for AWS: moto's server, with three repairs, each of which test_parallelcluster_repairs asks to be needed.

Runs in the venv of locks/moto.txt: `python aws.py PORT [--bare]`.
"""

import sys
from collections.abc import Mapping
from typing import Any

NAMES = ("outputs of nested stacks", "instances of launch templates", "resources that moto has none of")


def repair_outputs() -> None:
    """Let templates read the outputs of a nested stack (Fn::GetAtt)."""
    from moto.cloudformation.models import Stack

    def attribute(self: Any, name: str) -> Any:
        for output in self.outputs or []:
            if name == f"Outputs.{output['OutputKey']}":
                return output["OutputValue"]
        raise KeyError(name)

    Stack.get_cfn_attribute = attribute


def repair_instances() -> None:
    """Let a template's instance take image, type, key and subnet from its launch template."""
    from moto.ec2.models import ec2_backends
    from moto.ec2.models.instances import Instance

    original = Instance.create_from_cloudformation_json.__func__

    def create(cls: Any, name: str, reported: Mapping[str, Any], account: str, region: str, **more: Any) -> Any:
        properties = dict(reported["Properties"])
        template = properties.get("LaunchTemplate")
        if template and "ImageId" not in properties:
            backend = ec2_backends[account][region]
            found = backend.describe_launch_templates(template_ids=[template["LaunchTemplateId"]])[0]
            data = found.get_version(1).data
            properties |= {key: data[key] for key in ("ImageId", "InstanceType", "KeyName") if key in data}
            interface = (data.get("NetworkInterfaces") or [{}])[0]
            known = interface.get("NetworkInterfaceId")
            given = backend.get_network_interface(known).subnet.id if known else None
            properties["SubnetId"] = interface.get("SubnetId") or given
        return original(cls, name, {**reported, "Properties": properties}, account, region, **more)

    Instance.create_from_cloudformation_json = classmethod(create)


def repair_resources() -> None:
    """Leave out of a stack's resources those that moto could not make."""
    from moto.cloudformation.models import Stack

    Stack.stack_resources = property(lambda self: [each for each in self.resource_map.values() if each is not None])


REPAIRS = dict(zip(NAMES, (repair_outputs, repair_instances, repair_resources), strict=True))


def main() -> None:
    """Repair, then serve; the third argument leaves one repair out."""
    port, without = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else ""
    from moto.server import main as serve

    for name, repair in REPAIRS.items():
        if name != without:
            repair()
    serve(["-H", "127.0.0.1", "-p", port])


if __name__ == "__main__":
    main()
