"""The registry with its real programs: who may push, pull and delete what, and how much."""

import contextlib
import socket
import ssl
import tempfile
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from isthmus.clients import registry as client
from isthmus.clients.registry import Login, RegistryError
from isthmus.model.registry import Access, Readers
from tests.support.servers import registries
from tests.support.servers.registries import KEEPER, LAYER_GIB, MANIFEST, WRITERS, digest, until_counted
from tests.support.wait import wait

MIB = 1 << 20
SITES = b"the site's layer"


@pytest.fixture(scope="module")
def registry():
    """A registry with an image of the site's, and one of alice's that nobody else may pull."""
    with tempfile.TemporaryDirectory(prefix="registry-") as folder, registries.running(Path(folder) / "r") as running:
        running.image(KEEPER, "isthmus/busybox", "1", SITES)
        running.image("alice", "alice/tool", "1", b"alice's layer")
        yield running


def status(registry, user, method, repository, what="manifests/1", body=b""):
    return registry.as_user(user, method, f"/v2/{repository}/{what}", body).status


@pytest.mark.parametrize(
    ("user", "repository", "push", "pull"),
    [
        ("alice", "alice/other", 202, 404),
        ("alice", "alice/deep/er", 202, 404),
        ("alice", "alice", 202, 404),
        ("alice", "alice/tool", 202, 200),
        ("bob", "alice/tool", 401, 401),
        (KEEPER, "alice/tool", 401, 401),
        ("alice", "bob/tool", 401, 401),
        ("alice", "isthmus/busybox", 401, 200),
        ("alice", "library/busybox", 401, 404),
        ("alice", "alicia/tool", 401, 401),
        ("alice", "nobody/tool", 401, 401),
        (KEEPER, "isthmus/busybox", 202, 200),
        (KEEPER, "conformance/pause", 202, 404),
    ],
)
def test_who_may_push_and_pull(registry, user, repository, push, pull):
    assert status(registry, user, "POST", repository, "blobs/uploads/") == push
    assert status(registry, user, "GET", repository) == pull


@pytest.mark.parametrize("readers", [("site",), ("users", "bob")])
def test_shared_image_is_pulled_and_not_pushed(registry, readers):
    layer = f"{readers}".encode()
    found = registry.image("alice", "alice/shared", "1", layer)
    assert registry.share("alice", "alice/shared", *readers).status == 200
    assert status(registry, "bob", "GET", "alice/shared", f"manifests/{found}") == 200
    assert status(registry, "bob", "GET", "alice/shared", f"blobs/{digest(layer)}") == 200
    assert status(registry, "bob", "POST", "alice/shared", "blobs/uploads/") == 401
    assert status(registry, "bob", "DELETE", "alice/shared", f"manifests/{found}") == 401
    assert status(registry, "carol", "GET", "alice/shared") == (200 if readers[0] == "site" else 401)
    assert registry.overview("bob")["shared"] == ["alice/shared"]
    assert registry.share("alice", "alice/shared", "private").status == 200
    assert status(registry, "bob", "GET", "alice/shared") == 401


@pytest.mark.parametrize(
    ("user", "said", "answer"),
    [
        ("bob", ("alice/tool", "site"), 403),
        ("alice", ("isthmus/busybox", "private"), 403),
        ("alice", ("alice/../bob", "site"), 400),
        ("alice", ("alice/Tool", "site"), 400),
        ("alice", ("alice/tool", "users", "nobody"), 400),
        ("alice", ("alice/tool", "users"), 400),
        ("alice", ("alice/tool", "everybody"), 400),
    ],
)
def test_rights_that_cannot_be_are_refused(registry, user, said, answer):
    assert registry.share(user, *said).status == answer


def test_private_image_is_nobody_elses_by_digest_or_mount(registry):
    layer = digest(b"alice's layer")
    for what in (f"blobs/{layer}", f"manifests/{registry.image('alice', 'alice/tool', '1', b'alice layer 2')}"):
        assert status(registry, "bob", "GET", "alice/tool", what) == 401
        # Nor below a name of his own, whatever the digest.
        assert status(registry, "bob", "GET", "bob/tool", what) == 404
    token = registry.token("bob", "repository:bob/tool:pull,push", "repository:alice/tool:pull")
    for mount in (
        f"mount={layer}&from=alice/tool",
        f"from=alice%2ftool&mount={layer}",
        f"from=alice/tool&mount={layer}",
    ):
        assert registry.ask("POST", f"/v2/bob/tool/blobs/uploads/?{mount}", token).status == 401
    unnamed = registry.ask("POST", f"/v2/bob/tool/blobs/uploads/?mount={layer}", token)
    assert unnamed.status == 202  # an upload begins: nothing was mounted
    body = f"mount={layer}&from=alice/tool".encode()
    form = registry.ask("POST", "/v2/bob/tool/blobs/uploads/", token, body, "application/x-www-form-urlencoded")
    assert form.status == 202
    assert status(registry, "bob", "GET", "bob/tool", f"blobs/{layer}") == 404


def test_mount_of_what_one_may_pull_is_made(registry):
    layer = digest(SITES)
    token = registry.token("bob", "repository:bob/based:pull,push", "repository:isthmus/busybox:pull")
    mounted = registry.ask("POST", f"/v2/bob/based/blobs/uploads/?mount={layer}&from=isthmus/busybox", token)
    assert mounted.status == 201


def test_manifest_of_anothers_layers_is_refused(registry):
    """Bob knows the digests of what alice has; a manifest of his that names them gives him nothing."""
    content = registries.manifest(b"config", b"alice's layer")
    refused = registry.as_user("bob", "PUT", "/v2/bob/stolen/manifests/1", content, MANIFEST)
    assert refused.status == 400 or refused.status == 404, refused.words


@pytest.mark.parametrize(
    "path",
    [
        "/v2/alice/../bob/x/blobs/uploads/",
        "/v2/alice/%2e%2e/bob/x/blobs/uploads/",
        "/v2/alice%2f..%2fbob/x/blobs/uploads/",
        "/v2/bob%2fx/blobs/uploads/",
        "/v2//bob/x/blobs/uploads/",
        "/v2/./bob/x/blobs/uploads/",
        "/v2/BOB/x/blobs/uploads/",
        "/v2/alice/x/../../bob/x/blobs/uploads/",
        "/v2/alice/x/blobs/uploads/..%2f..%2f..%2fbob/x/blobs/uploads/",
    ],
)
def test_trick_with_a_path_writes_nothing(registry, path):
    token = registry.token("alice", "repository:alice/x:pull,push", "repository:alice:pull,push")
    answer = registry.ask("POST", path, token)
    assert answer.status in (301, 307, 308, 400, 401, 404, 405), answer.words
    assert not (registry.storage / "docker/registry/v2/repositories/bob/x").exists()


@pytest.mark.parametrize("path", ["/v2/_catalog", "/room", "/debug/vars", "/metrics", "/", "/isthmus/v1/images/"])
def test_nothing_else_is_reported(registry, path):
    for authorization in (registry.basic("alice"), registry.token("alice", "registry:catalog:*")):
        assert registry.ask("GET", path, authorization).status in (401, 404)


def test_stranger_gets_no_token(registry):
    wrong = registry.basic("alice")[:-4] + "AAA="
    for authorization in ("", wrong, "Basic", "Basic !", "Bearer x"):
        assert registry.ask("GET", "/auth/token", authorization).status == 401
        assert registry.ask("GET", "/isthmus/v1/images", authorization).status == 401
        assert registry.ask("PUT", "/isthmus/v1/access", authorization, b"{}").status == 401


def test_quota_refuses_with_a_reason_and_comes_back_after_cleaning(registry):
    layer = bytes(3 * MIB)
    registry.quotas({"alice": 1, "bob": 1, "carol": 4 / 1024})
    found = registry.image("carol", "carol/big", "1", layer)
    until_counted(registry, "carol")
    refused = registry.blob("carol", "carol/big", bytes(range(256)) * 8192)
    assert refused.status == 403
    assert "carol has 3." in refused.words and "and 2.0 MiB more are coming" in refused.words
    deleted = registry.as_user("carol", "DELETE", f"/v2/carol/big/manifests/{found}")
    assert deleted.status == 202
    # What was deleted counts until the registry is cleaned; what is needed stays.
    assert until_counted(registry, "carol") > 3 * MIB
    registry.clean()
    # The upload that was refused is forgotten after a day.
    assert until_counted(registry, "carol") < 64 << 10
    assert status(registry, "alice", "GET", "alice/tool") == 200
    assert status(registry, "alice", "GET", "isthmus/busybox", f"blobs/{digest(SITES)}") == 200
    assert registry.image("carol", "carol/big", "1", layer) == found


def test_quota_of_zero_and_a_full_disk_refuse_with_a_reason(registry):
    registry.quotas({"alice": 1, "bob": 1, "carol": 0})
    assert "gives carol no room in the registry (quota 0)" in registry.blob("carol", "carol/x", b"x").words
    registry.quotas({"alice": 1, "bob": 1, "carol": 1}, reserve_gib=900_000)
    assert "nearly full" in registry.blob("carol", "carol/x", b"x").words
    registry.quotas({"alice": 1, "bob": 1, "carol": 1})
    assert registry.blob("carol", "carol/x", b"x").status == 201


def test_what_is_begun_and_what_is_empty_counts_too(registry):
    before = until_counted(registry, "carol")
    for number in range(5):
        assert status(registry, "carol", "POST", f"carol/empty{number}", "blobs/uploads/") == 202
    begun = registry.as_user("carol", "POST", "/v2/carol/begun/blobs/uploads/")
    path = begun.headers["location"].partition(registry.address)[2]
    token = registry.token("carol", "repository:carol/begun:pull,push")
    assert registry.ask("PATCH", path, token, bytes(MIB)).status == 202
    assert until_counted(registry, "carol") >= before + MIB + 6 * 2 * (16 << 10)


def test_body_that_is_too_large_is_refused_at_once(registry):
    link = registry.connect()
    link.putrequest("PATCH", "/v2/alice/x/blobs/uploads/1")
    link.putheader("Content-Length", str((LAYER_GIB << 30) + 1))
    link.endheaders()
    answer = link.getresponse()
    assert answer.status == 413
    assert b"more than 1 GiB" in answer.read()


@contextlib.contextmanager
def slow(registry, user, repository):
    """A request of a user's that writes and does not end."""
    begun = registry.as_user(user, "POST", f"/v2/{repository}/blobs/uploads/")
    path = begun.headers["location"].partition(registry.address)[2]
    token = registry.token(user, f"repository:{repository}:pull,push")
    context = ssl.create_default_context(cafile=str(registry.folder / "tls/ca.crt"))
    plain = socket.create_connection(("127.0.0.1", registry.port), timeout=30)
    with context.wrap_socket(plain, server_hostname="127.0.0.1") as link:
        head = f"PATCH {path} HTTP/1.1\r\nHost: {registry.address}\r\nAuthorization: {token}\r\n"
        link.sendall((head + "Transfer-Encoding: chunked\r\n\r\n1\r\nx\r\n").encode())
        yield link


def test_writes_of_one_user_at_once_are_few_and_others_write(registry):
    with contextlib.ExitStack() as stack:
        for number in range(WRITERS):
            stack.enter_context(slow(registry, "alice", f"alice/slow{number}"))
        more = lambda: status(registry, "alice", "POST", "alice/more", "blobs/uploads/")  # noqa: E731 -- one use
        wait(more, lambda answer: answer == 429, timeout_s=10)
        assert status(registry, "alice", "GET", "alice/tool") == 200
        assert registry.blob("bob", "bob/free", b"x").status == 201


def test_request_with_two_lengths_is_refused(registry):
    """What nginx and the registry could take for two requests."""
    context = ssl.create_default_context(cafile=str(registry.folder / "tls/ca.crt"))
    plain = socket.create_connection(("127.0.0.1", registry.port), timeout=30)
    with context.wrap_socket(plain, server_hostname="127.0.0.1") as link:
        head = f"POST /v2/alice/x/blobs/uploads/ HTTP/1.1\r\nHost: {registry.address}\r\nContent-Length: 4\r\n"
        link.sendall((head + "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /").encode())
        assert link.recv(100).startswith(b"HTTP/1.1 400")


def test_pulls_go_on_while_the_registry_is_cleaned(registry):
    registry.image("alice", "alice/kept", "1", b"kept")
    failed, ended = [], threading.Event()

    def pull():
        while not ended.is_set():
            if (found := status(registry, "alice", "GET", "alice/kept")) != 200:
                failed.append(found)

    reader = threading.Thread(target=pull)
    reader.start()
    registry.clean()
    ended.set()
    reader.join()
    assert not failed


def test_nothing_is_written_while_the_registry_is_cleaned(registry):
    registry.start("readonly")
    registry.stop("registry")
    try:
        assert status(registry, "alice", "POST", "alice/x", "blobs/uploads/") == 405
        assert status(registry, "alice", "GET", "alice/tool") == 200
    finally:
        registry.start("registry")
        registry.stop("readonly")


def test_isthmus_images_says_and_sees_it(registry):
    login = Login(registry.address, registry.basic("alice").removeprefix("Basic "), registry.folder / "tls/ca.crt")
    registry.image("alice", "alice/mine", "1", b"mine")
    client.set_access(login, "alice/mine", Access(Readers.USERS, frozenset({"bob"})))
    found = {each.name: each for each in client.overview(login).repositories}
    assert found["alice/mine"].access.words() == "bob"
    assert list(found["alice/mine"].tags) == ["1"]
    with pytest.raises(RegistryError, match="is not yours; yours begin with alice/"):
        client.set_access(login, "bob/x", Access(Readers.SITE))
    with pytest.raises(RegistryError, match="no account of the registry, or another password"):
        client.overview(replace(login, auth="eDp4"))
    with pytest.raises(RegistryError, match="does not answer"):
        client.overview(replace(login, address="127.0.0.1:1"))
    assert login.auth not in repr(login)
