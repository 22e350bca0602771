"""What a token says, and which of them are trusted."""

import json
import string
from base64 import urlsafe_b64decode

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature
from cryptography.hazmat.primitives.hashes import SHA256
from hypothesis import given
from hypothesis import strategies as st

from isthmus.registry.rights import Scope
from isthmus.registry.tokens import LEEWAY_S, LIFETIME_S, Signer, TokenError, fingerprint

KEY = ec.generate_private_key(ec.SECP256R1())
SIGNER = Signer(KEY, lambda: "ctl:5000")
NOW_S = 1_800_000_000.5
PULL = frozenset({"pull"})


def said(token):
    return [json.loads(urlsafe_b64decode(part + "==")) for part in token.split(".")[:2]]


def test_token_says_who_may_what_until_when():
    scopes = {Scope("repository", "alice/x", PULL): PULL, Scope("repository", "bob/x", PULL): frozenset()}
    header, claims = said(SIGNER.token("alice", scopes, NOW_S))
    assert header == {"typ": "JWT", "alg": "ES256", "kid": fingerprint(KEY.public_key())}
    assert claims["access"] == [{"type": "repository", "name": "alice/x", "actions": ["pull"]}]
    assert (claims["sub"], claims["aud"], claims["exp"]) == ("alice", "ctl:5000", int(NOW_S) + LIFETIME_S)


def test_signature_is_of_the_two_parts():
    token = SIGNER.token("alice", {}, NOW_S)
    signed, _, signature = token.rpartition(".")
    raw = urlsafe_b64decode(signature + "==")
    halves = int.from_bytes(raw[:32], "big"), int.from_bytes(raw[32:], "big")
    KEY.public_key().verify(encode_dss_signature(*halves), signed.encode(), ec.ECDSA(SHA256()))


@pytest.mark.parametrize("late_s", [0, LIFETIME_S, LIFETIME_S + LEEWAY_S - 1])
def test_own_token_is_trusted_as_long_as_the_registry_trusts_it(late_s):
    assert SIGNER.account(SIGNER.token("alice", {}, NOW_S), NOW_S + late_s) == "alice"


@pytest.mark.parametrize(
    ("token", "words"),
    [
        (SIGNER.token("alice", {}, NOW_S - LIFETIME_S - LEEWAY_S - 1), "over"),
        (Signer(KEY, lambda: "other:5000").token("alice", {}, NOW_S), "another registry"),
        (Signer(ec.generate_private_key(ec.SECP256R1()), lambda: "ctl:5000").token("alice", {}, NOW_S), "not of this"),
        (SIGNER.token("alice", {}, NOW_S)[:-4], "signature"),
        (SIGNER.token("alice", {}, NOW_S) + "A" * 20_000, "not of this"),
        ("", "not of this"),
        ("..", "not of this"),
    ],
)
def test_other_token_is_not_trusted(token, words):
    with pytest.raises(TokenError, match=words):
        SIGNER.account(token, NOW_S)


@given(st.data())
def test_changed_token_is_not_trusted(data):
    token = SIGNER.token("alice", {}, NOW_S)
    place = data.draw(st.integers(0, len(token) - 1))
    letter = data.draw(st.sampled_from([*string.printable, "\xe9", "\0"]).filter(lambda each: each != token[place]))
    changed = token[:place] + letter + token[place + 1 :]
    try:
        # The last letter of 64 bytes has bits that mean nothing.
        assert SIGNER.account(changed, NOW_S) == "alice"
        assert place == len(token) - 1
    except TokenError:
        pass


def test_fingerprint_is_libtrusts():
    name = fingerprint(KEY.public_key())
    assert [len(part) for part in name.split(":")] == [4] * 12
