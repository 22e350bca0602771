"""aiohttp, imported without the authorities that the host trusts; servers are in `isthmus.support.aio.serving`.

aiohttp reads all of them when it is imported, for connections that bring no context of their own: 30 ms of processor
time at each start of a command, daemon or kubelet. Each connection of ours brings one, so the import is pointed at an
empty file. A connection without a context trusts nobody.
"""

from __future__ import annotations

import importlib
import os

# SSL_CTX_set_default_verify_paths(3)
_AUTHORITIES = ("SSL_CERT_FILE", "SSL_CERT_DIR")


def _load() -> None:
    kept = {name: os.environ[name] for name in _AUTHORITIES if name in os.environ}
    os.environ.update(dict.fromkeys(_AUTHORITIES, os.devnull))
    try:
        importlib.import_module("aiohttp")
    finally:
        for name in _AUTHORITIES:
            del os.environ[name]
        os.environ.update(kept)


_load()

import aiohttp  # noqa: E402 - it is loaded above, in the only way that is fast
from aiohttp import WSMessage, WSMsgType  # noqa: E402

__all__ = ["WSMessage", "WSMsgType", "aiohttp"]
