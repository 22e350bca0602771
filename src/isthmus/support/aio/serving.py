"""aiohttp's server, apart from its client: commands that only ask need not load it."""

from __future__ import annotations

from aiohttp import web

__all__ = ["web"]
