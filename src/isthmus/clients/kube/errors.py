"""What an API server may refuse, or not answer at all."""

from __future__ import annotations


class KubeError(Exception):
    """The API server refused, or did not answer.

    Attributes:
        status: the HTTP status; None for no answer.
    """

    def __init__(self, words: str, status: int | None = None) -> None:
        self.status = status
        super().__init__(words)


class UnreachableError(KubeError):
    """No answer, or one that says nothing of the object; nothing is known."""


class NotFoundError(KubeError):
    """There is no such object."""


class ConflictError(KubeError):
    """The object exists already, or has changed meanwhile."""


class GoneError(KubeError):
    """The watch cannot go on from that version; list again."""


class RefusedError(KubeError):
    """Not allowed, or not valid."""


_KINDS: dict[int, type[KubeError]] = {
    401: RefusedError,
    403: RefusedError,
    404: NotFoundError,
    409: ConflictError,
    410: GoneError,
    422: RefusedError,
}


def of_status(status: int, words: str) -> KubeError:
    """Return the error of an answer."""
    # A 5xx or "too many requests" says nothing about the object.
    kind = _KINDS.get(status, UnreachableError if status >= 500 or status == 429 else KubeError)
    return kind(words, status)
