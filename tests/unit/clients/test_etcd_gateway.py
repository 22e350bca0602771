"""Tokens that end at an unlucky moment; the rest is seen with a real etcd."""

from __future__ import annotations

from pathlib import Path

import pytest
import requests

from isthmus.clients.etcd import gateway as etcd_gateway
from isthmus.clients.etcd.gateway import Access, Gateway, TokenError, UnavailableError

ACCESS = Access(("https://etcd",), Path("ca"), Path("crt"), Path("key"), "alice", "word", timeout_s=0.1)


@pytest.fixture
def asked(monkeypatch):
    """An etcd that calls so many tokens old; the tokens that it was asked with."""
    monkeypatch.setattr(etcd_gateway, "PAUSE_S", 0)
    tokens = []

    def call(refusals):
        def post(self, endpoint, path, body, timeout, token):
            answer = requests.Response()
            if path == "auth/authenticate":
                answer._content = f'{{"token": "{len(tokens)}"}}'.encode()
                return answer
            tokens.append(token)
            if len(tokens) <= refusals:
                raise TokenError("etcdserver: invalid auth token")
            answer._content = b"{}"
            return answer

        monkeypatch.setattr(Gateway, "_post", post)
        return tokens

    return call


def test_new_token_that_has_ended_already_is_replaced_too(asked):
    tokens = asked(refusals=3)
    assert Gateway(ACCESS).call("kv/range", {}) == {}
    assert tokens == ["0", "1", "1", "3"]


def test_tokens_that_are_never_good_are_told(asked):
    asked(refusals=10**6)
    with pytest.raises(UnavailableError, match="a new token is good no longer: etcdserver: invalid auth token"):
        Gateway(ACCESS).call("kv/range", {})
