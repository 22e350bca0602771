"""ParallelCluster's own library as a strict client: each answer is looked at, none is guessed from a status.

A dry run that passes is an error of the library's (DryRunOperation), as is an update without a change, and a deletion
that CloudFormation has ended before it is described. So what counts is the answer's JSON alone.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ansible.module_utils.urls import open_url

DRY = "Request would have succeeded, but DryRun flag is set."
SAME = "No changes found in your cluster configuration."
ABSENT = "does not exist"
RIGHTS = "give the credentials in the environment the rights that docs/admins/parallelcluster.md names"
# What botocore says of credentials that are not there or count no more.
CREDENTIALS = ("NoCredentialsError", "ExpiredToken", "InvalidClientTokenId", "UnrecognizedClient", "AuthFailure")
CONFIG_BYTES = 4 << 20


class ClusterError(Exception):
    """What AWS or ParallelCluster refused; `problems` are its single reasons."""

    def __init__(self, message: str, problems: list[str] | None = None) -> None:
        super().__init__(message)
        self.problems = problems or []


def plain(answer: Any) -> dict[str, Any]:
    """An answer, or what an error carries, as JSON has it."""
    from pcluster.api.encoder import JSONEncoder

    # Of what a call has begun there is nothing to say.
    document = {} if answer is None else json.loads(json.dumps(answer, cls=JSONEncoder))
    if not isinstance(document, dict):
        raise ClusterError(f"ParallelCluster answered {str(document)[:200]}, no object; use the pinned version")
    return document


def reasons(content: Mapping[str, Any]) -> Iterator[str]:
    """Single reasons of a refusal: validators' errors, and changes that cannot be made."""
    for each in content.get("configurationValidationErrors") or []:
        if str(each.get("level", "ERROR")) == "ERROR":
            yield f"{each.get('type', '')}: {each.get('message', '')}"
    for each in content.get("updateValidationErrors") or []:
        yield f"{each.get('parameter', '')}: {each.get('message', '')}"


class Api:
    """One cluster.

    Args:
        name: of it.
        region: where it is.
        suppressed: validators that are not asked; for tests alone.
    """

    def __init__(self, name: str, region: str, suppressed: list[str]) -> None:
        os.environ["AWS_DEFAULT_REGION"] = region
        import boto3
        import pcluster.lib

        self.name, self.region, self._suppressed = name, region, suppressed
        self._library, self._session = pcluster.lib, boto3.session.Session(region_name=region)

    def client(self, service: str) -> Any:
        """Botocore's client of a service."""
        return self._session.client(service)

    def _ask(self, call: Callable[..., Any], **arguments: Any) -> dict[str, Any]:
        try:
            return plain(call(**arguments, region=self.region))
        except Exception as error:
            content = getattr(error, "content", None)
            answered = plain(content) if content is not None else {"message": str(error) or repr(error)}
            raise self._refused(answered, error) from error

    def _refused(self, answered: Mapping[str, Any], error: BaseException) -> ClusterError:
        message = str(answered.get("message") or repr(error))
        if any(word in f"{error!r} {error.__cause__!r} {message}" for word in CREDENTIALS):
            message = f"AWS takes no credentials of this environment ({message}); renew them, or set AWS_PROFILE"
        return ClusterError(message, list(reasons(answered)))

    def describe(self) -> dict[str, Any] | None:
        """What there is, None for nothing."""
        try:
            return self._ask(self._library.describe_cluster, cluster_name=self.name)
        except ClusterError as error:
            if ABSENT in str(error):
                return None
            raise

    def live_config(self, described: Mapping[str, Any]) -> dict[str, Any] | None:
        """The configuration that the cluster was made with; None where there is none to be had."""
        import yaml

        url = str((described.get("clusterConfiguration") or {}).get("url", ""))
        if not url.startswith(("https://", "http://")):
            return None
        try:
            config = yaml.safe_load(open_url(url, timeout=30).read(CONFIG_BYTES))
        except (OSError, ValueError, yaml.YAMLError) as error:
            raise ClusterError(f"{self.name}'s configuration cannot be read: {error}; {RIGHTS}") from error
        return config if isinstance(config, dict) else None

    def try_out(self, config: Mapping[str, Any], *, there: bool) -> None:
        """Let ParallelCluster validate with AWS's answers; nothing is made.

        Raises:
            ClusterError: it would refuse.
        """
        try:
            self._submit(config, there=there, dryrun=True)
        except ClusterError as error:
            if str(error) not in (DRY, SAME):
                raise

    def submit(self, config: Mapping[str, Any], *, there: bool) -> None:
        """Begin to make the cluster, or to change it.

        Raises:
            ClusterError: it was refused.
        """
        try:
            self._submit(config, there=there, dryrun=False)
        except ClusterError as error:
            if str(error) != SAME:
                raise

    def _submit(self, config: Mapping[str, Any], *, there: bool, dryrun: bool) -> None:
        call = self._library.update_cluster if there else self._library.create_cluster
        more = {} if there else {"rollback_on_failure": False}
        if self._suppressed:
            more["suppress_validators"] = self._suppressed
        self._ask(call, cluster_name=self.name, cluster_configuration=dict(config), dryrun=dryrun, **more)

    def delete(self) -> None:
        """Begin to delete the cluster; one that is gone is well."""
        try:
            self._ask(self._library.delete_cluster, cluster_name=self.name)
        except ClusterError as error:
            if ABSENT not in str(error):
                raise

    def end_instances(self) -> None:
        """End compute nodes that a deletion left behind."""
        self._ask(self._library.delete_cluster_instances, cluster_name=self.name, force=True)

    def instances(self) -> list[dict[str, Any]]:
        """Every instance of the cluster."""
        found: list[dict[str, Any]] = []
        token = None
        while True:
            more = {"next_token": token} if token else {}
            response = self._ask(self._library.describe_cluster_instances, cluster_name=self.name, **more)
            found += response.get("instances") or []
            token = response.get("nextToken")
            if not token:
                return found

    def fleet(self) -> str:
        """State of the compute fleet."""
        response = self._ask(self._library.describe_compute_fleet, cluster_name=self.name)
        return str(response.get("status", "UNKNOWN"))

    def set_fleet(self, status: str) -> None:
        """Ask for another state of the compute fleet."""
        self._ask(self._library.update_compute_fleet, cluster_name=self.name, status=status)

    def node_names(self) -> dict[str, str]:
        """Instance -> Slurm's name of the node, which ParallelCluster keeps in a table alone; none without it."""
        from botocore.exceptions import BotoCoreError, ClientError

        try:
            pages = (
                self.client("dynamodb").get_paginator("scan").paginate(TableName=f"parallelcluster-slurm-{self.name}")
            )
            items = [item for page in pages for item in page["Items"]]
        except (BotoCoreError, ClientError):
            return {}
        pairs = [(item.get("InstanceId", {}).get("S"), item.get("Id", {}).get("S")) for item in items]
        return {instance: name for instance, name in pairs if instance and name}

    def events(self) -> list[str]:
        """Why CloudFormation gave up: its failed resources, the first in front."""
        response = self._ask(self._library.get_cluster_stack_events, cluster_name=self.name)
        failed = [
            each for each in response.get("events") or [] if str(each.get("resourceStatus", "")).endswith("_FAILED")
        ]
        return [f"{each.get('logicalResourceId')}: {each.get('resourceStatusReason')}" for each in reversed(failed)]
