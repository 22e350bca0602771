"""Which version of PodGroups is read from an API server."""

import asyncio

import pytest

from isthmus.clients.kube.api import NotFoundError
from isthmus.controlplane import programs
from isthmus.kubelet.gangs import groups
from isthmus.kubelet.gangs.groups import Group
from isthmus.kubelet.gangs.served import PodGroups, UnknownVersionError

OWN = Group(groups.OWN, "shop", "pi")


class Server:
    """An API server with kinds of the API group in each of its versions."""

    def __init__(self, **versions):
        self.versions, self.asked, self.there = versions, [], True

    async def get(self, path):
        self.asked.append(path)
        match path.removeprefix(f"/apis/{OWN.api}").strip("/").split("/"):
            case [""] if self.versions:
                return {"kind": "APIGroup", "versions": [{"version": version} for version in self.versions]}
            case [version] if version in self.versions:
                return {"kind": "APIResourceList", "resources": [{"name": name} for name in self.versions[version]]}
            case [version, "namespaces", "shop", "podgroups", "pi"] if self.there:
                if "podgroups" in self.versions.get(version, ()):
                    return {"apiVersion": version}
        raise NotFoundError(404, path)


def read(reader, times=1):
    async def main():
        return [(await reader.get(OWN))["apiVersion"] for _ in range(times)]

    return asyncio.run(main())


@pytest.mark.parametrize(
    ("served", "version"),
    [
        # Kubernetes 1.36, and 1.37 with either or both.
        ({"v1": ["priorityclasses"], "v1alpha2": ["podgroups", "workloads"]}, "v1alpha2"),
        ({"v1": ["priorityclasses"], "v1beta1": ["podgroups"], "v1alpha3": ["podgroups"]}, "v1beta1"),
        ({"v1alpha3": ["podgroups"], "v1beta1": ["podgroups"]}, "v1beta1"),
        ({"v1": ["priorityclasses"], "v1alpha3": ["podgroups", "compositepodgroups"]}, "v1alpha3"),
        # A version that is there for other kinds.
        ({"v1beta1": ["workloads"], "v1alpha3": ["podgroups"]}, "v1alpha3"),
        # A newer one than is known, as long as one of these is there too.
        ({"v1": ["priorityclasses", "podgroups"], "v1beta1": ["podgroups"]}, "v1beta1"),
    ],
)
def test_newest_known_version_is_read(served, version):
    assert read(PodGroups(Server(**served))) == [version]


def test_api_server_is_asked_for_versions_once():
    server = Server(v1=["priorityclasses"], v1beta1=["podgroups"])
    assert read(PodGroups(server), times=3) == ["v1beta1"] * 3
    assert [path for path in server.asked if "namespaces" not in path] == [
        "/apis/scheduling.k8s.io",
        "/apis/scheduling.k8s.io/v1beta1",
    ]


def test_versions_are_asked_for_again_when_a_group_is_not_there():
    server = Server(v1alpha2=["podgroups"])
    reader = PodGroups(server)
    assert read(reader) == ["v1alpha2"]
    server.versions = {"v1beta1": ["podgroups"]}
    with pytest.raises(NotFoundError):
        read(reader)
    assert read(reader) == ["v1beta1"]


@pytest.mark.parametrize("served", [{"v1": ["priorityclasses"]}, {"v1": ["podgroups"]}, {"v1beta1": ["workloads"]}])
def test_versions_that_are_not_known_are_named_with_the_remedy(served):
    words = f"{next(iter(served))}, and PodGroups are known in v1beta1, v1alpha3, v1alpha2: name a PodGroup of sched"
    with pytest.raises(UnknownVersionError, match=words):
        read(PodGroups(Server(**served)))


def test_api_that_is_not_there_is_a_group_that_is_not_there():
    with pytest.raises(NotFoundError):
        read(PodGroups(Server()))


def test_api_servers_are_started_with_versions_that_are_known():
    assert set(programs.GROUPS.values()) <= set(groups.VERSIONS[groups.OWN])
