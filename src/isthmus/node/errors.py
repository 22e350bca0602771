"""Errors of joining."""

from __future__ import annotations


class JoinError(Exception):
    """It could not be done now; trying again may help. The message has problem and remedy."""


class RefusedError(JoinError):
    """It will not be done, however often it is tried; nothing was changed."""
