"""PodGroups as this API server has them: the newest version of their API that it serves and that is known here.

The API is young, and each release of Kubernetes has it in another version. A kubelet works with API servers of several
releases (isthmus.model.skew), so it asks for the versions once, and again when a PodGroup is not there: the kind may
have another version since.
"""

from __future__ import annotations

from typing import Protocol

from isthmus.clients.kube.api import NotFoundError, Object
from isthmus.kubelet.gangs import groups
from isthmus.kubelet.gangs.groups import Group


class Reader(Protocol):
    """The part of isthmus.clients.kube.api.Kube that is used here."""

    async def get(self, path: str) -> Object:
        """Return an object."""


class UnknownVersionError(Exception):
    """The API server has PodGroups in no version that is known here."""


class PodGroups:
    """Reads PodGroups.

    Args:
        kube: the API server.
    """

    def __init__(self, kube: Reader) -> None:
        self._kube = kube
        self._versions: dict[str, str] = {}

    async def get(self, group: Group) -> Object:
        """Return a PodGroup.

        Raises:
            NotFoundError: it is not there, or nothing of its API.
            UnknownVersionError: only versions that are not known here.
            KubeError: the API server did not answer.
        """
        version = self._versions.get(group.api) or await self._newest(group.api)
        try:
            found = await self._kube.get(group.path(version))
        except NotFoundError:
            self._versions.pop(group.api, None)
            raise
        self._versions[group.api] = version
        return found

    async def _newest(self, api: str) -> str:
        versions = [str(each["version"]) for each in (await self._kube.get(f"/apis/{api}")).get("versions") or ()]
        for version in groups.known(api, versions):
            resources = (await self._kube.get(f"/apis/{api}/{version}")).get("resources") or ()
            # A version may be there for other kinds alone.
            if any(each["name"] == groups.RESOURCE for each in resources):
                return version
        raise UnknownVersionError(
            f"the API server has {api} in {', '.join(versions)}, and PodGroups are known in"
            f" {', '.join(groups.VERSIONS[api])}: {_REMEDY[api]}"
        )


_REMEDY = {
    groups.OWN: f"name a PodGroup of {groups.PLUGINS} by the label {groups.LABEL}",
    groups.PLUGINS: "install its kind of scheduler-plugins in one of these",
}
