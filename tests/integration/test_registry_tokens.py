"""Tokens that are not isthmus-tokend's, or not any more, or another's: the registry trusts none."""

import base64
import json
import tempfile
import time
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from isthmus.registry.rights import Scope
from isthmus.registry.tokens import LEEWAY_S, LIFETIME_S, Signer
from tests.support.servers import registries

ALL = frozenset({"pull", "push", "delete"})
WRITES = {"POST": "/v2/alice/tool/blobs/uploads/", "PUT": "/v2/alice/tool/manifests/2"}


@pytest.fixture(scope="module")
def registry():
    with tempfile.TemporaryDirectory(prefix="registry-") as folder, registries.running(Path(folder) / "r") as running:
        running.image("alice", "alice/tool", "1")
        yield running


def signer(registry, service=""):
    key = load_pem_private_key((registry.folder / "state/token.key").read_bytes(), None)
    return Signer(key, lambda: service or registry.address)


def made(by, account="alice", name="alice/tool", began_s=0.0):
    scope = Scope("repository", name, ALL)
    return by.token(account, {scope: ALL}, began_s or time.time())


def parts(token):
    return [json.loads(base64.urlsafe_b64decode(part + "==")) for part in token.split(".")[:2]]


def joined(header, claims, signature):
    texts = [base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in (header, claims)]
    return ".".join([*texts, signature])


def changed(token, header=None, signature=None, **claims):
    """Return a token with other words under the same signature, or another."""
    before, said = parts(token)
    return joined(header or before, said | claims, token.split(".")[2] if signature is None else signature)


def bad(registry):
    """Name -> a token that nobody should trust."""
    good, foreign = made(signer(registry)), Signer(ec.generate_private_key(ec.SECP256R1()), lambda: registry.address)
    header, _ = parts(good)
    alien, _ = parts(made(foreign))
    over_s = time.time() - LIFETIME_S - LEEWAY_S - 5
    chain = (registry.folder / "tls/etcd.crt").read_text().splitlines()[1:-1]
    return {
        "no algorithm": changed(good, header={"typ": "JWT", "alg": "none"}, signature=""),
        "no algorithm, our key": changed(good, header=header | {"alg": "none"}, signature=""),
        "a shared secret": changed(good, header=header | {"alg": "HS256"}),
        "another key": made(foreign),
        "another key under our name": changed(made(foreign), header=header),
        "a certificate of the cluster's CA": changed(
            good, header={"typ": "JWT", "alg": "ES256", "x5c": ["".join(chain)]}
        ),
        "a key in the header": changed(
            made(foreign), header=alien | {"jwk": {"kty": "EC", "crv": "P-256", "x": "AA", "y": "AA"}}
        ),
        "over": made(signer(registry), began_s=over_s),
        "not yet": changed(good, nbf=int(time.time()) + 3600),
        "for another registry": made(signer(registry, "other:5000")),
        "of another issuer": changed(good, iss="alice"),
        "with another's rights": changed(made(signer(registry), "bob", "bob/tool"), access=parts(good)[1]["access"]),
        "for another repository": made(signer(registry), "bob", "bob/tool"),
        "cut": good[:-8],
        "empty": "",
        "three dots": "..",
    }


@pytest.fixture(scope="module")
def tokens(registry):
    return bad(registry)


NAMES = (
    *("no algorithm", "no algorithm, our key", "a shared secret", "another key", "another key under our name"),
    *("a certificate of the cluster's CA", "a key in the header", "over", "not yet", "for another registry"),
    *("of another issuer", "with another's rights", "for another repository", "cut", "empty", "three dots"),
)


@pytest.mark.parametrize("name", NAMES)
def test_bad_token_opens_nothing(registry, tokens, name):
    token = f"Bearer {tokens[name]}"
    assert registry.ask("GET", "/v2/alice/tool/manifests/1", token).status == 401
    for method, path in WRITES.items():
        assert registry.ask(method, path, token, b"").status == 401


def test_every_bad_token_is_tried(tokens):
    assert set(tokens) == set(NAMES)


def test_good_token_opens_what_it_says_in_any_spelling_of_its_scheme(registry):
    token = made(signer(registry))
    for scheme in ("Bearer", "bearer"):
        assert registry.ask("GET", "/v2/alice/tool/manifests/1", f"{scheme} {token}").status == 200
        assert registry.ask("POST", WRITES["POST"], f"{scheme} {token}").status == 202


def test_token_that_the_registry_still_trusts_is_still_judged_by_the_quota(registry):
    """A minute after its end; else who is full could write for that minute."""
    token = made(signer(registry), began_s=time.time() - LIFETIME_S - 20)
    assert registry.ask("POST", WRITES["POST"], f"Bearer {token}").status == 202
    registry.quotas({"alice": 0, "bob": 1})
    refused = registry.ask("POST", WRITES["POST"], f"Bearer {token}")
    registry.quotas({"alice": 1, "bob": 1})
    assert refused.status == 403


def test_account_that_is_gone_writes_nothing_with_a_token_of_before(registry):
    token = registry.token("bob", "repository:bob/x:push,pull")
    registry.quotas({"alice": 1})
    refused = registry.ask("POST", "/v2/bob/x/blobs/uploads/", token)
    registry.quotas({"alice": 1, "bob": 1})
    assert refused.status == 401


def test_password_instead_of_a_token_opens_nothing(registry):
    assert registry.ask("GET", "/v2/alice/tool/manifests/1", registry.basic("alice")).status == 401
    assert registry.ask("POST", WRITES["POST"], registry.basic("alice")).status == 401


def test_key_and_tokens_outlive_a_restart(registry):
    token = registry.token("alice", "repository:alice/tool:pull")
    registry.share("alice", "alice/tool", "users", "bob")
    registry.stop("tokend")
    registry.start("tokend")
    assert registry.ask("GET", "/v2/alice/tool/manifests/1", token).status == 200
    assert registry.as_user("bob", "GET", "/v2/alice/tool/manifests/1").status == 200
