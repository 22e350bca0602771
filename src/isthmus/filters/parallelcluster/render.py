"""The cluster's configuration, as ParallelCluster reads it, out of a site's variables.

Pure, and small on purpose: what ParallelCluster has words for that no other provider has is given in its own words, as
`settings` of the part that they belong to, and checked by its own schema.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from isthmus.filters.parallelcluster import settings
from isthmus.filters.parallelcluster.queues import Kinds, kinds, kinds_of, logins, ordered

# The one distribution that both ParallelCluster and Isthmus know.
OS = "ubuntu2404"
# Arguments of a head node's script can never change (ParallelCluster makes a new cluster then): they name neither a
# version nor a digest, which stand in the bucket.
SCRIPT = "bootstrap.sh"
TAG = "isthmus:cluster"

Config = dict[str, Any]


def cluster_config(site: Mapping[str, Any]) -> Config:
    """Return the configuration of a site's cluster.

    Args:
        site: `cluster`, `managed`, `nodes`, `partitions`, `slurm` (of slurm.conf), and the role's variables without
            prefix.

    Raises:
        InputError: nodes are wrong, or a setting has no form.
    """
    config: Config = {
        "Region": site["region"],
        "Image": {"Os": OS, **({"CustomAmi": site["image"]} if site["image"] else {})},
        "HeadNode": _head(site),
        **_login(site),
        "Scheduling": _scheduling(site),
        **_storage(site),
        **_directory(site),
        "DevSettings": {
            "Timeouts": {
                "HeadNodeBootstrapTimeout": site["timeout_s"],
                "ComputeNodeBootstrapTimeout": site["timeout_s"],
            }
        },
        "Tags": [{"Key": key, "Value": str(value)} for key, value in {TAG: site["cluster"], **site["tags"]}.items()],
    }
    return merged(config, site["settings"])


def merged(config: Mapping[str, Any], more: Mapping[str, Any]) -> Config:
    """Merge a site's own settings into rendered ones; mappings are merged, other values replaced."""
    result = dict(config)
    for key, value in more.items():
        known = result.get(key)
        both = isinstance(known, Mapping) and isinstance(value, Mapping)
        result[key] = merged(known or {}, value) if both else value
    return result


def scripts(site: Mapping[str, Any]) -> dict[str, str]:
    """Return the URLs of the nodes' start scripts in the bucket."""
    folder = f"s3://{site['bucket']}/{site['prefix'].strip('/')}"
    return {"folder": folder, "script": f"{folder}/{SCRIPT}"}


def image_script(site: Mapping[str, Any]) -> str:
    """What `pcluster build-image` runs, as a component of type script, in an image of ParallelCluster's."""
    place = scripts(site)
    script = f"/tmp/{SCRIPT}"  # noqa: S108 - in an image that is being made, nobody else is
    return f"""\
#!/bin/bash
set -euo pipefail
aws s3 cp --only-show-errors {place["script"]} {script}
bash {script} image {site["cluster"]} {place["folder"]}
"""


def _action(site: Mapping[str, Any], role: str) -> Config:
    place = scripts(site)
    return {"Script": place["script"], "Args": [role, site["cluster"], place["folder"]]}


def _access(site: Mapping[str, Any]) -> Config:
    key = f"{site['prefix'].strip('/')}/*"
    return {"S3Access": [{"BucketName": site["bucket"], "KeyName": key, "EnableWriteAccess": False}]}


def _head(site: Mapping[str, Any]) -> Config:
    head = site["head"]
    own: Config = {
        "InstanceType": head["instance_type"],
        "Networking": {"SubnetId": head["subnet"]},
        "Ssh": {"KeyName": site["key_name"]},
        "Iam": _access(site),
        "CustomActions": {"OnNodeConfigured": _action(site, "head"), "OnNodeUpdated": _action(site, "head")},
    }
    if head.get("volume_gib"):
        own["LocalStorage"] = {"RootVolume": {"Size": head["volume_gib"]}}
    return merged(own, head.get("settings", {}))


def _login(site: Mapping[str, Any]) -> Config:
    login = site["login"]
    if not login:
        return {}
    pool: Config = {
        "Name": "login",
        "Count": logins(site["nodes"]),
        "InstanceType": login["instance_type"],
        "Networking": {"SubnetIds": [login.get("subnet") or site["head"]["subnet"]]},
        # Its schema has no S3Access here.
        "Iam": {"AdditionalIamPolicies": [{"Policy": login["policy"]}]},
        "CustomActions": {"OnNodeConfigured": _action(site, "login")},
    }
    return {"LoginNodes": {"Pools": [merged(pool, login.get("settings", {}))]}}


def _scheduling(site: Mapping[str, Any]) -> Config:
    own: Config = {
        "ScaledownIdletime": site["idle_min"],
        "QueueUpdateStrategy": site["update"],
        "EnableMemoryBasedScheduling": True,
        "CustomSlurmSettings": settings.custom(settings.of_cluster(site["slurm"])),
    }
    database = site["database"]
    if database:
        own["Database"] = {
            "Uri": database["uri"],
            "UserName": database["user"],
            "PasswordSecretArn": database["password_secret"],
        }
    every = kinds(site["nodes"], site["kinds"])
    return {
        "Scheduler": "slurm",
        "SlurmSettings": own,
        "SlurmQueues": [_queue(site, each, kinds_of(each, every)) for each in ordered(site["partitions"])],
    }


def _queue(site: Mapping[str, Any], partition: Mapping[str, Any], own: Kinds) -> Config:
    subnets = [subnet for kind in own.values() for subnet in kind.get("subnets", [])]
    slurm = dict(partition.get("options") or {})
    if partition.get("max_time"):
        slurm["MaxTime"] = partition["max_time"]
    queue: Config = {
        "Name": partition["name"],
        "Networking": {"SubnetIds": list(dict.fromkeys(subnets)) or [site["head"]["subnet"]]},
        "Iam": _access(site),
        "CustomActions": {"OnNodeConfigured": _action(site, "compute")},
        "ComputeResources": [_resource(name, kind) for name, kind in own.items()],
    }
    if any(kind.get("spot") for kind in own.values()):
        queue["CapacityType"] = "SPOT"
    if slurm:
        queue["CustomSlurmSettings"] = {key: value for each in settings.custom(slurm) for key, value in each.items()}
    return queue


def _resource(name: str, kind: Mapping[str, Any]) -> Config:
    types = kind["instance_types"]
    own: Config = {"Name": name}
    # One type by its own key: ParallelCluster can then be asked whether it is there in each zone.
    own |= {"InstanceType": types[0]} if len(types) == 1 else {"Instances": [{"InstanceType": each} for each in types]}
    own |= {"MinCount": kind["min"], "MaxCount": kind["max"]}
    if kind.get("memory_mib"):
        own["SchedulableMemory"] = kind["memory_mib"]
    if kind.get("weight") is not None:
        own |= {"StaticNodePriority": kind["weight"], "DynamicNodePriority": kind["weight"]}
    if kind.get("efa"):
        own["Efa"] = {"Enabled": True}
    return merged(own, kind.get("settings", {}))


def _storage(site: Mapping[str, Any]) -> Config:
    mounts = [
        {
            "Name": each["name"],
            "MountDir": each["mount"],
            "StorageType": each["type"],
            **({f"{each['type']}Settings": each["settings"]} if each.get("settings") else {}),
        }
        for each in site["storage"]
    ]
    return {"SharedStorage": mounts} if mounts else {}


def _directory(site: Mapping[str, Any]) -> Config:
    directory = site["directory"]
    if not directory:
        return {}
    own = {
        "DomainName": directory["domain"],
        "DomainAddr": ",".join(directory["servers"]),
        "DomainReadOnlyUser": directory["user"],
        "PasswordSecretArn": directory["password_secret"],
    }
    return {"DirectoryService": merged(own, directory.get("settings", {}))}
