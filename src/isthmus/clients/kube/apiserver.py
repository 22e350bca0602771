"""One Kubernetes API server over TLS with a client certificate: health, reading, and server-side apply.

Server-side apply (Kubernetes: Server-Side Apply) makes what is missing and changes only fields that are this
manager's; to repeat it is harmless. A watch is one request; who needs many, as the kubelet does, has another client.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import requests
from requests.adapters import HTTPAdapter
from urllib3.util import Retry

MANAGER = "isthmus"
TIMEOUT_S = 10.0
_STATUS_GONE = 404
# An answer with Retry-After (429: too many requests, or the storage of a new kind begins) is asked for again, as often
# as client-go does; a connection that fails is the caller's to judge.
_RETRIES = Retry(total=10, connect=0, read=0, redirect=0, other=0, allowed_methods=None, raise_on_status=False)


class ApiError(Exception):
    """The API server cannot be reached, or refuses; `status` is its HTTP status, None for no answer.

    Attributes:
        status: the HTTP status.
    """

    def __init__(self, words: str, status: int | None = None) -> None:
        self.status = status
        super().__init__(words)


@dataclass(frozen=True, slots=True)
class Access:
    """How a client gets in: the URL, and three files."""

    server: str
    ca: Path
    certificate: Path
    key: Path


class ApiServer:
    """A client; each call stands for itself, so several threads may share it."""

    def __init__(self, access: Access, timeout_s: float = TIMEOUT_S) -> None:
        self._access = access
        self._timeout_s = timeout_s
        self._resources = cache(self._read_resources)

    def get(self, path: str) -> Any:
        """Return the object, or list, at a path.

        Raises:
            ApiError: it is not there, or no answer.
        """
        return self._ask("GET", path).json()

    def text(self, path: str) -> str:
        """Return what a path says, as /readyz does.

        Raises:
            ApiError: it does not say "yes", or no answer.
        """
        return self._ask("GET", path).text

    def watch(self, path: str, timeout_s: int) -> Iterator[Any]:
        """Yield objects of a list as they are now and after each change, until the time is over or the server ends it.

        Args:
            path: of the list, with selectors.
            timeout_s: when the server ends it.

        Raises:
            ApiError: refused, no answer, or it broke off.
        """
        join = "&" if "?" in path else "?"
        with self._session() as session:
            whole = f"{path}{join}watch=true&timeoutSeconds={timeout_s}"
            response = self._request(session, "GET", whole, timeout_s=timeout_s + self._timeout_s, stream=True)
            try:
                for line in response.iter_lines():
                    yield json.loads(line)["object"]
            except requests.RequestException as error:
                raise ApiError(f"GET {path}: the watch broke off: {error}") from error

    def apply(self, item: Mapping[str, Any]) -> None:
        """Make an object so; fields of other managers that differ are taken over.

        Raises:
            ApiError: refused, or no answer.
        """
        self._ask(
            "PATCH",
            f"{self._path(item)}?fieldManager={MANAGER}&force=true",
            json.dumps(item),
            "application/apply-patch+yaml",
        )

    def delete(self, item: Mapping[str, Any]) -> None:
        """Remove an object; one that is gone is fine.

        Raises:
            ApiError: refused, or no answer.
        """
        try:
            self._ask("DELETE", self._path(item))
        except ApiError as error:
            if error.status != _STATUS_GONE:
                raise

    def _path(self, item: Mapping[str, Any]) -> str:
        version, kind, meta = item["apiVersion"], item["kind"], item["metadata"]
        base = f"/apis/{version}" if "/" in version else f"/api/{version}"
        try:
            plural, is_namespaced = self._resources(base)[kind]
        except KeyError as error:
            raise ApiError(f"the API server has no {version} {kind}") from error
        scope = f"/namespaces/{meta.get('namespace', 'default')}" if is_namespaced else ""
        return f"{base}{scope}/{plural}/{meta['name']}"

    def _read_resources(self, base: str) -> dict[str, tuple[str, bool]]:
        listed = self.get(base)["resources"]
        return {each["kind"]: (each["name"], each["namespaced"]) for each in listed if "/" not in each["name"]}

    def _ask(self, method: str, path: str, body: str | None = None, kind: str = "") -> requests.Response:
        with self._session() as session:
            headers = {"Content-Type": kind} if kind else None
            return self._request(session, method, path, timeout_s=self._timeout_s, data=body, headers=headers)

    def _session(self) -> requests.Session:
        session = requests.Session()
        # No proxy of the site's leads to a pod network.
        session.trust_env = False
        session.mount("https://", HTTPAdapter(max_retries=_RETRIES))
        return session

    def _request(
        self, session: requests.Session, method: str, path: str, *, timeout_s: float, **options: Any
    ) -> requests.Response:
        access = self._access
        try:
            response = session.request(
                method,
                access.server + path,
                verify=str(access.ca),
                cert=(str(access.certificate), str(access.key)),
                timeout=timeout_s,
                **options,
            )
        # A file that is not there is an OSError of its own, before any connection.
        except (requests.RequestException, OSError) as error:
            raise ApiError(f"{access.server} did not answer: {error}") from error
        if not response.ok:
            raise ApiError(f"{method} {path}: {_said(response)}", response.status_code)
        return response


def _said(response: requests.Response) -> str:
    try:
        return str(response.json()["message"])
    except (ValueError, KeyError, TypeError):
        return f"{response.status_code} {response.text.strip()}"
