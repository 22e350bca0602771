"""The client against a real API server: the cases of the fake, and what only a server can do."""

import asyncio
import uuid

import pytest

from isthmus.clients.kube import api as kube
from tests.support.fakes import api_server_cases


async def with_client(api_server, name, use):
    api = await kube.Kube.connect(api_server.kubeconfig(name))
    try:
        return await use(api)
    finally:
        await api.close()


async def in_namespace(api, case):
    namespace = f"case-{uuid.uuid4().hex[:8]}"
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
    await api.create("/api/v1/namespaces", body)
    await case(api, namespace)


@pytest.mark.parametrize("case", api_server_cases.CASES, ids=lambda case: case.__name__)
def test_real_server_passes_the_case(api_server, case):
    asyncio.run(with_client(api_server, "admin", lambda api: in_namespace(api, case)))


def test_rights_are_reported(api_server):
    call = lambda api: api_server_cases.refused(kube.RefusedError, api.get("/api/v1/secrets"))  # noqa: E731
    asyncio.run(with_client(api_server, "nobody", call))


def test_invalid_object_is_refused(api_server):
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "No Name"}}
    path = api_server_cases.path("default")
    asyncio.run(
        with_client(
            api_server, "admin", lambda api: api_server_cases.refused(kube.RefusedError, api.create(path, body))
        )
    )


def test_large_object_is_watched_whole(api_server):
    async def use(api):
        path = api_server_cases.path("default")
        listed = await api.get(path)
        await api.create(path, api_server_cases.config("large", data="x" * 900_000))
        async for event in api.watch(path, listed["metadata"]["resourceVersion"]):
            return len(event.object["data"]["data"])

    assert asyncio.run(with_client(api_server, "admin", use)) == 900_000


def test_dead_server_is_unreachable(api_server, tmp_path):
    path = api_server.kubeconfig("admin")
    elsewhere = tmp_path / "config"
    elsewhere.write_text(path.read_text().replace(str(api_server.port), "1"))

    async def use():
        api = await kube.Kube.connect(elsewhere)
        try:
            await api_server_cases.refused(kube.UnreachableError, api.get("/api/v1/namespaces"))
        finally:
            await api.close()

    asyncio.run(use())


def test_proxy_of_the_environment_is_not_asked(api_server, monkeypatch):
    """Images may need one; it leads to no cluster of a user's own."""
    for name in ("https_proxy", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    found = asyncio.run(with_client(api_server, "admin", lambda api: api.get("/api/v1/namespaces/default")))
    assert found["metadata"]["name"] == "default"
