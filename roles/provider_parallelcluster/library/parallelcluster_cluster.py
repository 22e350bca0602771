"""The module `parallelcluster_cluster`: a cluster in AWS is described, tried out, made, changed or deleted.

It runs in ParallelCluster's own venv, and answers with one record whatever was asked: what there is, under names that
do not change with ParallelCluster's. What a killed run left half-made is waited for and gone on with. A fleet that
ParallelCluster protects, because nodes failed again and again, is an answer at once: no waiting would help.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.parallelcluster_api import ABSENT, Api, ClusterError

ARGUMENTS = {
    "name": {"type": "str", "required": True},
    "region": {"type": "str", "required": True},
    "state": {"type": "str", "choices": ["described", "tried", "present", "absent"], "required": True},
    "config": {"type": "dict", "default": {}},
    "owner_tag": {"type": "str", "required": True},
    "stop_fleet": {"type": "bool", "default": False},
    "wait_s": {"type": "int", "default": 3600},
    "poll_s": {"type": "float", "default": 15},
    "suppress_validators": {"type": "list", "elements": "str", "default": []},
}
ENDED = "_COMPLETE"
BUSY = "_IN_PROGRESS"
PROTECTED = "PROTECTED"
ROLES = {"HeadNode": "head", "LoginNode": "login", "ComputeNode": "compute"}


def record(api: Api, described: Mapping[str, Any] | None) -> dict[str, Any]:
    """What there is, under names of our own."""
    if described is None:
        return {"schema": 1, "state": "absent", "fleet": "", "instances": [], "config": None, "version": ""}
    instances, names = api.instances(), api.node_names()
    return {
        "schema": 1,
        "state": str(described["clusterStatus"]),
        "fleet": str(described.get("computeFleetStatus") or "UNKNOWN"),
        "version": str(described.get("version", "")),
        "config": api.live_config(described),
        "instances": [
            {
                "id": each["instanceId"],
                "role": ROLES.get(str(each.get("nodeType")), str(each.get("nodeType"))),
                "queue": each.get("queueName") or "",
                "node": names.get(each["instanceId"], ""),
                "private": each.get("privateIpAddress") or "",
                "public": each.get("publicIpAddress") or "",
                "state": str(each.get("state", "")),
            }
            for each in instances
        ],
    }


class Cluster:
    """Changes of one cluster; `changed` is set once there was one."""

    def __init__(self, api: Api, params: Mapping[str, Any], check: bool) -> None:
        self.api, self.params, self.check = api, params, check
        self.changed = False
        self._end = time.monotonic() + params["wait_s"]

    def described(self) -> dict[str, Any] | None:
        """What there is; one that is not ours is refused."""
        cluster = self.api.describe()
        if cluster is None:
            return None
        tags = {each["key"]: each["value"] for each in cluster.get("tags") or []}
        if tags.get(self.params["owner_tag"]) != self.api.name:
            raise ClusterError(
                f"{self.api.name} is a cluster of {self.api.region} that Isthmus did not make (it has no tag"
                f" {self.params['owner_tag']}); choose another cluster_name"
            )
        return cluster

    def stable(self) -> dict[str, Any] | None:
        """What there is, once nothing is under way."""
        while True:
            cluster = self.described()
            if cluster is None or not str(cluster["clusterStatus"]).endswith(BUSY):
                return cluster
            if time.monotonic() > self._end:
                raise ClusterError(
                    f"{self.api.name} is {cluster['clusterStatus']} after {self.params['wait_s']} s; run again, which"
                    " goes on waiting, or see its stack in CloudFormation"
                )
            time.sleep(self.params["poll_s"])

    def present(self) -> None:
        """Create or update it."""
        cluster = self.stable()
        config = self.params["config"]
        if cluster is not None and not str(cluster["clusterStatus"]).endswith(ENDED):
            raise ClusterError(
                f"{self.api.name} is {cluster['clusterStatus']}: {'; '.join(self.api.events()[:3])}; see"
                " /var/log/cfn-init.log of the head node, then run playbooks/teardown.yml, and begin again"
            )
        if cluster is not None and self.api.live_config(cluster) == config:
            self._refuse_protected(cluster)
            return
        self.api.try_out(config, there=cluster is not None)
        self.changed = True
        if self.check:
            return
        stopped = cluster is not None and self._stop()
        self.api.submit(config, there=cluster is not None)
        made = self.stable()
        if made is None or not str(made["clusterStatus"]).endswith(ENDED):
            status = made["clusterStatus"] if made else "gone"
            raise ClusterError(f"{self.api.name} is {status}: {'; '.join(self.api.events()[:3])}; see its log group")
        if stopped:
            self.api.set_fleet("START_REQUESTED")
        self._refuse_protected(made)

    def _stop(self) -> bool:
        if not self.params["stop_fleet"] or self.api.fleet() in ("STOPPED", "UNKNOWN"):
            return False
        self.api.set_fleet("STOP_REQUESTED")
        while self.api.fleet() != "STOPPED":
            if time.monotonic() > self._end:
                raise ClusterError(f"the fleet of {self.api.name} is {self.api.fleet()}; wait until its jobs ended")
            time.sleep(self.params["poll_s"])
        return True

    def _refuse_protected(self, cluster: Mapping[str, Any]) -> None:
        if cluster.get("computeFleetStatus") == PROTECTED:
            raise ClusterError(
                f"the fleet of {self.api.name} is PROTECTED: nodes failed ten times to come up, and their queues are"
                " closed; see bootstrap_error_msg in the cluster's log group, mend it, then `pcluster"
                f" update-compute-fleet -n {self.api.name} --status START_REQUESTED`"
            )

    def absent(self) -> None:
        """Delete it, and what a deletion leaves."""
        cluster = self.described()
        if cluster is None:
            return
        self.changed = True
        if self.check:
            return
        if not str(cluster["clusterStatus"]).startswith("DELETE"):
            self.api.delete()
        left = self.stable()
        if left is not None:
            raise ClusterError(
                f"{self.api.name} is {left['clusterStatus']}: {'; '.join(self.api.events()[:3])}; run again"
            )
        if self.api.instances():
            self.api.end_instances()


def main() -> None:
    """Do what is asked, then describe."""
    module = AnsibleModule(ARGUMENTS, supports_check_mode=True)
    params = module.params
    api = Api(params["name"], params["region"], params["suppress_validators"])
    cluster = Cluster(api, params, module.check_mode)
    try:
        if params["state"] == "present":
            cluster.present()
        elif params["state"] == "absent":
            cluster.absent()
        elif params["state"] == "tried":
            api.try_out(params["config"], there=cluster.described() is not None)
        found = record(api, cluster.described())
    except ClusterError as error:
        gone = params["state"] == "absent" and ABSENT in str(error)
        if not gone:
            module.fail_json(msg="; ".join([str(error), *error.problems]), problems=error.problems)
        found = record(api, None)
    module.exit_json(changed=cluster.changed, record=found)


if __name__ == "__main__":
    main()
