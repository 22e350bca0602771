"""The module `parallelcluster_check`: what ParallelCluster's own code says of a configuration, without AWS.

It runs in ParallelCluster's own venv (`ansible_python_interpreter`) and asks three of its parts: the schema; every
validator that needs no answer of AWS, of which there are some twenty kinds; and the rules by which it decides what an
update of the configuration that is there would need. All but the first are private to ParallelCluster, so its version
is pinned, and a part that is not where it was ends the task: an unasked validator must not look like a content one.

AWS is not asked even with credentials in the environment: the one way to it is replaced before anything is read.
"""

from __future__ import annotations

import os
import traceback
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ansible.module_utils.basic import AnsibleModule

ARGUMENTS = {
    "name": {"type": "str", "required": True},
    "config": {"type": "dict", "required": True},
    "live": {"type": "dict"},
    "running": {"type": "bool", "default": True},
}
# What a validator says that asked the stand-in.
NO_AWS = "AWS is not asked"
# What one says that goes past it, with a client of its own: there are no credentials to go with.
NO_CREDENTIALS = "Unable to locate credentials"
NOWHERE = {
    "AWS_EC2_METADATA_DISABLED": "true",
    "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
    "AWS_CONFIG_FILE": os.devnull,
}
CHECKS = {"SUCCEEDED": "", "ACTION NEEDED": "action", "FAILED": "refused"}


class Service:
    """A service of AWS, each of whose calls is refused."""

    def __getattr__(self, name: str) -> Callable[..., Any]:
        """Any call."""

        def refuse(*_: Any, **__: Any) -> Any:
            from pcluster.aws.common import AWSClientError

            raise AWSClientError(name, NO_AWS)

        return refuse


class Silent:
    """Every service."""

    def __init__(self, region: str) -> None:
        self.aws_region = region

    def __getattr__(self, name: str) -> Service:
        """Any service."""
        return Service()


def silence(region: str) -> None:
    """Let nothing of ParallelCluster reach AWS from here on."""
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        del os.environ[name]
    os.environ.update(NOWHERE, AWS_DEFAULT_REGION=region)
    from pcluster.aws.aws_api import AWSApi

    AWSApi._instance = Silent(region)


def flat(messages: Any, place: str = "") -> Iterator[str]:
    """Schema errors, which are nested as the configuration is, as lines `place: what`."""
    if isinstance(messages, Mapping):
        for key, value in messages.items():
            where = place if key == "_schema" else f"{place}/{key}".lstrip("/")
            yield from flat(value, where)
    elif isinstance(messages, list | tuple):
        for each in messages:
            yield from flat(each, place)
    else:
        yield f"{place or 'configuration'}: {messages}"


def schema(name: str, config: Mapping[str, Any]) -> tuple[Any, list[str]]:
    """The configuration as ParallelCluster has it, or what its schema says against it."""
    from marshmallow import ValidationError
    from pcluster.schemas.cluster_schema import ClusterSchema

    try:
        return ClusterSchema(cluster_name=name).load(config), []
    except ValidationError as error:
        return None, list(flat(error.messages))


def resources(root: Any) -> Iterator[Any]:
    """A resource and all below it."""
    yield root
    for nested in root._nested_resources():
        yield from resources(nested)


def unasked(message: str) -> bool:
    """Return whether a message only says that AWS was not there."""
    return NO_AWS in message or NO_CREDENTIALS in message


def is_silence(error: BaseException | None) -> bool:
    """Return whether an error comes of the stand-in for AWS."""
    return error is not None and (unasked(f"{error} {error!r}") or is_silence(error.__cause__ or error.__context__))


def asked(resource: Any, context: Any) -> Iterator[Any]:
    """Results of the validators of one resource that need no AWS; those of the others are left out."""
    resource._validators.clear()
    # Some register none behind the first whose arguments come from AWS.
    try:
        resource._register_validators(context)
    except Exception as error:
        if not is_silence(error):
            raise
    for kind, arguments in resource._validators:
        try:
            yield kind.__name__, kind().execute(**arguments)
        except Exception as error:
            if not is_silence(error):
                yield kind.__name__, [error]


def validators(cluster: Any) -> tuple[list[str], list[str], list[str]]:
    """What validators refuse, what they warn of, and which were asked."""
    from pcluster.validators.common import FailureLevel, ValidationResult, ValidatorContext

    refused, warned, ran = [], [], []
    results = [each for resource in resources(cluster) for each in asked(resource, ValidatorContext())]
    for name, found in results:
        ran.append(name)
        for result in found:
            if not isinstance(result, ValidationResult):
                refused.append(f"{name}: it ended with {result!r}")
            elif not unasked(result.message):
                (refused if result.level == FailureLevel.ERROR else warned).append(f"{name}: {result.message}")
    return list(dict.fromkeys(refused)), list(dict.fromkeys(warned)), sorted(set(ran))


class Live:
    """The cluster that there is, as far as the rules of an update ask for it."""

    stack = None

    def __init__(self, name: str, running: bool) -> None:
        self.name, self._running = name, running

    def has_running_capacity(self, updated_value: bool = False) -> bool:
        """Return whether compute nodes run."""
        return self._running

    def has_running_login_nodes(self, updated_value: bool = False) -> bool:
        """Return whether login nodes run."""
        return self._running

    def get_running_capacity(self) -> int:
        """How many compute nodes run; the rules compare it with 0."""
        return int(self._running)


def changes(name: str, live: Mapping[str, Any], config: Mapping[str, Any], running: bool) -> list[dict[str, str]]:
    """What differs from the configuration that is there, and what each difference needs."""
    from pcluster.config.config_patch import ConfigPatch

    _, rows = ConfigPatch(cluster=Live(name, running), base_config=live, target_config=config).check()
    head, *rest = rows
    sections = [dict(zip(head, row, strict=True)) for row in rest]
    return [
        {
            "path": ".".join([*map(str, row["param_path"]), str(row["parameter"])]),
            "old": str(row["old value"]),
            "new": str(row["new value"]),
            "needs": CHECKS[str(getattr(row["check"], "value", row["check"]))],
            "reason": str(row["reason"] or ""),
            "remedy": str(row["action_needed"] or ""),
            "policy": str(row["update_policy"] or ""),
        }
        for row in sections
    ]


def main() -> None:
    """Ask all parts; problems are an answer, not a failure, for the caller words them."""
    module = AnsibleModule(ARGUMENTS, supports_check_mode=True)
    name, config, live = (module.params[key] for key in ("name", "config", "live"))
    try:
        silence(str(config.get("Region") or "us-east-1"))
        from pcluster.utils import get_installed_version

        cluster, problems = schema(name, config)
        warnings, ran = [], []
        if cluster is not None:
            problems, warnings, ran = validators(cluster)
        rows = changes(name, live, config, module.params["running"]) if live and not problems else []
        version = get_installed_version()
    except Exception as error:
        module.fail_json(
            msg=f"ParallelCluster's code is not as this role knows it ({error!r}); use the version of"
            " locks/parallelcluster.txt",
            exception=traceback.format_exc(),
        )
    module.exit_json(changed=False, version=version, problems=problems, cautions=warnings, asked=ran, changes=rows)


if __name__ == "__main__":
    main()
