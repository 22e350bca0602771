"""Tokens that end at an unlucky moment; the rest is seen with a real etcd."""

from __future__ import annotations

from pathlib import Path

import pytest

from isthmus.clients.etcd.gateway import Access, EtcdError, Gateway, TokenError, UnavailableError

ACCESS = Access(
    ("https://etcd",), Path("ca"), Path("crt"), Path("key"), "alice", "word", timeout_s=0.1, pauses_s=(0.0, 0.0)
)


@pytest.fixture
def asked(monkeypatch):
    """An etcd that calls so many tokens old; the tokens that it was asked with."""
    tokens = []

    def call(refusals):
        def post(self, request):
            if request.path == "auth/authenticate":
                return f'{{"token": "{len(tokens)}"}}'.encode()
            tokens.append(request.token)
            if len(tokens) <= refusals:
                raise TokenError("etcdserver: invalid auth token")
            return b"{}"

        monkeypatch.setattr(Gateway, "_post", post)
        return tokens

    return call


def test_new_token_that_has_ended_already_is_replaced_too(asked):
    tokens = asked(refusals=3)
    assert Gateway(ACCESS).call("kv/range", {}) == {}
    assert tokens == ["0", "1", "1", "3"]


def test_tokens_that_are_never_good_are_reported(asked):
    asked(refusals=10**6)
    with pytest.raises(UnavailableError, match="a new token is good no longer: etcdserver: invalid auth token"):
        Gateway(ACCESS).call("kv/range", {})


def test_certificates_that_cannot_be_read_are_named():
    with pytest.raises(UnavailableError, match="No such file"):
        Gateway(ACCESS).call("kv/range", {})


def test_closed_client_asks_nobody_and_is_not_waited_for():
    gateway = Gateway(ACCESS)
    gateway.close()
    with pytest.raises(EtcdError, match="the client was closed") as refused:
        gateway.call("kv/range", {})
    assert not isinstance(refused.value, UnavailableError)
