"""A connection to one cloud and region, and every error of it as a problem with a remedy."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import openstack
from keystoneauth1 import exceptions as keystone
from openstack.config import OpenStackConfig
from openstack.connection import Connection
from openstack.exceptions import ConfigException, HttpException, SDKException

__all__ = ["CloudError", "Connection", "calls", "connect", "region_of"]
# A call that takes longer is not answered at all; a service may take a while to keep an image.
_CALL_S = 300
_AGAIN = "run it again; what was made is kept"
_NEW_CREDENTIAL = "create a new application credential and write it to clouds.yaml"


class CloudError(Exception):
    """The cloud refused, or could not be asked."""

    def __init__(self, problem: str, remedy: str) -> None:
        """Join both halves."""
        super().__init__(f"{problem}; {remedy}")


def connect(cloud: str, region: str) -> Connection:
    """Log in.

    Args:
        cloud: its name in clouds.yaml; "" takes the environment's (OS_CLOUD, OS_AUTH_URL ...).
        region: its name; "" takes the one of clouds.yaml, where there are not several.

    Raises:
        CloudError: no such cloud or region, none chosen of several, or credentials that are not valid (any more).
    """
    with _as_cloud_errors(cloud or "of the environment"):
        try:
            connection = openstack.connect(
                cloud=cloud or None, region_name=region or None, api_timeout=_CALL_S, app_name="isthmus"
            )
        except ConfigException as error:
            raise CloudError(f"cloud {cloud!r}: {str(error).rstrip('.')}", f"clouds.yaml has: {_clouds()}") from error
        _refuse_choice(_regions(connection.config.name or ""), cloud, region)
        # Not authorize(), whose error hides which it was.
        connection.session.get_token()
        _refuse_region(connection, cloud)
    return connection


def region_of(connection: Connection) -> str:
    """Return the name of the connection's region; "" where the cloud names none."""
    return connection.config.get_region_name() or ""


def _clouds() -> str:
    try:
        config = OpenStackConfig()
    except ConfigException:
        return "nothing"
    # The SDK leaves out a file that it cannot read.
    nothing = "nothing: there is none, or it is no YAML that you can read"
    return ", ".join(sorted(config.get_cloud_names())) if config.config_filename else nothing


def _regions(cloud: str) -> list[str]:
    """Return the regions that clouds.yaml lists for a cloud."""
    found = OpenStackConfig().cloud_config["clouds"].get(cloud) or {}
    return [str(one["name"] if isinstance(one, Mapping) else one) for one in found.get("regions") or ()]


def _refuse_choice(known: Sequence[str], cloud: str, region: str | None) -> None:
    """Refuse to choose: the SDK takes the first one, and the next run would look for the cluster there."""
    if not region and len(known) > 1:
        raise CloudError(f"cloud {cloud!r} has several regions", f"set region to one of them: {', '.join(known)}")


def _refuse_region(connection: Connection, cloud: str) -> None:
    region = region_of(connection)
    places = [place for one in connection.service_catalog if one["type"] == "compute" for place in one["endpoints"]]
    known = sorted({str(place["region_id"]) for place in places})
    _refuse_choice(known, cloud, region)
    if region and region not in known:
        raise CloudError(f"cloud {cloud!r} has no region {region!r}", f"it has: {', '.join(known) or 'none'}")


@contextmanager
def _as_cloud_errors(cloud: str) -> Iterator[None]:
    try:
        yield
    except keystone.MissingRequiredOptions as error:
        raise CloudError(
            f"cloud {cloud!r} lacks something: {_line(error)}",
            f"complete it, or set cloud; clouds.yaml has: {_clouds()}",
        ) from error
    except (keystone.ClientException, SDKException) as error:
        if _is_of_the_credentials(error):
            raise CloudError(
                f"cloud {cloud!r} does not accept the credentials: {_line(error)}",
                f"they are wrong or have expired: {_NEW_CREDENTIAL}",
            ) from error
        raise CloudError(
            f"cloud {cloud!r} cannot be asked: {_line(error)}", "is auth_url right, and reachable?"
        ) from error


def _is_of_the_credentials(error: Exception) -> bool:
    # keystone answers 404 for an application credential that was deleted, as it does for a wrong path of auth_url.
    if isinstance(error, keystone.NotFound):
        return "application credential" in str(error).lower()
    return isinstance(error, keystone.Unauthorized)


@contextmanager
def calls(what: str) -> Iterator[None]:
    """Turn errors of calls into one that says what was tried."""
    try:
        yield
    except HttpException as error:
        text = error.details or error.message or str(error)
        status = f" ({error.status_code})" if error.status_code else ""
        raise CloudError(f"{what} failed{status}: {_line(text)}", _AGAIN) from error
    except (SDKException, keystone.ClientException) as error:
        gone = f"the credentials have expired or were deleted: {_NEW_CREDENTIAL}; {_AGAIN}"
        raise CloudError(f"{what} failed: {_line(error)}", gone if _is_of_the_credentials(error) else _AGAIN) from error


def _line(error: object) -> str:
    return " ".join(str(error).split())[:400]
