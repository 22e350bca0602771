"""HTTP downloads that go on where they were cut off (RFC 9110, range requests)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import requests

ATTEMPTS = 3
CONNECT_S = 15
CHUNK = 1 << 16
RESUMES, TOO_FAR = 206, 416


class DownloadError(Exception):
    """A URL gave no whole file; the message names it."""


def fetch(url: str, path: Path, *, stall_s: float = 60, log: Callable[[str], None] = lambda text: None) -> None:
    """Download a file.

    Args:
        url: http or https; redirections are followed.
        path: where it goes; removed again when no whole file came.
        stall_s: how long the server may be silent.
        log: takes a line whenever the server has to be asked again.

    Raises:
        DownloadError: the server refuses, or each attempt was cut off.
    """
    reason = ""
    try:
        for attempt in range(ATTEMPTS):
            if attempt:
                log(f"{url}: {reason}; asking for the rest")
            reason = _attempt(url, path, stall_s)
            if not reason:
                return
    except requests.HTTPError as error:
        path.unlink(missing_ok=True)
        raise DownloadError(f"{url}: {error.response.status_code} {error.response.reason}") from error
    except BaseException:
        path.unlink(missing_ok=True)
        raise
    path.unlink(missing_ok=True)
    raise DownloadError(f"{url}: {reason}, {ATTEMPTS} times")


def read(url: str, *, stall_s: float = 60) -> str:
    """Return a small text file.

    Raises:
        DownloadError: the server does not give it.
    """
    try:
        answer = requests.get(url, timeout=(CONNECT_S, stall_s))
        answer.raise_for_status()
    except requests.RequestException as error:
        raise DownloadError(f"{url}: {_reason(error)}") from error
    return answer.text


def _attempt(url: str, path: Path, stall_s: float) -> str:
    """Fetch what is missing; return why it is still not whole, or nothing."""
    have = path.stat().st_size if path.exists() else 0
    headers = {"Accept-Encoding": "identity", **({"Range": f"bytes={have}-"} if have else {})}
    try:
        with requests.get(url, headers=headers, stream=True, timeout=(CONNECT_S, stall_s)) as answer:
            if have and answer.status_code == TOO_FAR:
                path.unlink()
                return "the file there became shorter"
            answer.raise_for_status()
            with path.open("ab" if answer.status_code == RESUMES else "wb") as file:
                file.writelines(answer.iter_content(CHUNK))
            expected = answer.headers.get("Content-Length")
            begun = have if answer.status_code == RESUMES else 0
    except requests.HTTPError:
        raise
    except requests.ConnectionError as error:
        # A server that was never reached will not be so a moment later.
        if not path.exists():
            raise DownloadError(f"{url}: {_reason(error)}") from error
        return _reason(error)
    except requests.RequestException as error:
        return _reason(error)
    if expected is not None and path.stat().st_size != begun + int(expected):
        return f"cut off after {path.stat().st_size} of {begun + int(expected)} bytes"
    return ""


def _reason(error: requests.RequestException) -> str:
    if error.response is not None:
        return f"{error.response.status_code} {error.response.reason}"
    if isinstance(error, requests.Timeout):
        return "no answer in time"
    if isinstance(error, requests.exceptions.ChunkedEncodingError):
        return "cut off"
    return f"{type(error).__name__}: {error}"
