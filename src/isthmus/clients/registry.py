"""isthmus-tokend of the cluster's registry: who may pull what, and what is there (`isthmus.model.registry`)."""

from __future__ import annotations

import json
import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from isthmus.clients import http
from isthmus.clients.http import Limits
from isthmus.model.registry import (
    ACCESS_PATH,
    IMAGES_PATH,
    Access,
    Overview,
    RegistryMessageError,
    read_overview,
    write_access,
)

CA = Path("/etc/isthmus/ca.crt")
IMAGES = Path("/etc/isthmus/images.json")
_TIMEOUT_S = 30.0
# A user's names: more than they can have.
_ANSWER_BYTES = 64 << 20
_OK = 200


class RegistryError(Exception):
    """The registry did not do it; the message has the remedy."""


@dataclass(frozen=True, slots=True)
class Login:
    """Where the registry is, and as whom it is asked.

    Attributes:
        address: host:port.
        auth: base64 of account and password, as containers-auth.json(5) has it; never shown.
        ca: the certificate that its own is trusted by.
    """

    address: str
    auth: str
    ca: Path = CA

    def __repr__(self) -> str:
        """Show no password."""
        return f"Login({self.address!r})"


def login(authfile: Path, images: Path = IMAGES) -> Login:
    """Find the cluster's registry, and the user's credential for it.

    Args:
        authfile: the user's, in Docker's form.
        images: the registry's images, from the playbook.

    Raises:
        RegistryError: there is none, or no credential for it.
    """
    try:
        address = str(json.loads(images.read_text(encoding="utf-8"))["registry"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise RegistryError(f"{images} names no registry; the site's admin must run playbooks/apptainer.yml") from error
    try:
        auth = str(json.loads(authfile.read_text(encoding="utf-8"))["auths"][address]["auth"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        remedy = "the site's playbook writes one"
        raise RegistryError(f"{authfile} has no credential for {address}; {remedy}") from error
    return Login(address, auth)


def overview(to: Login) -> Overview:
    """Return what the user has in the registry.

    Raises:
        RegistryError: it does not say.
    """
    try:
        return read_overview(_ask(to, "GET", IMAGES_PATH, None))
    except RegistryMessageError as error:
        raise RegistryError(f"{to.address}: {error}; is this isthmus older than the registry?") from error


def set_access(to: Login, repository: str, access: Access) -> None:
    """Say who may pull from a repository of the user's.

    Raises:
        RegistryError: it refuses.
    """
    _ask(to, "PUT", ACCESS_PATH, {"repository": repository} | write_access(access))


def _ask(to: Login, method: str, path: str, body: dict[str, Any] | None) -> Any:
    headers = {"Authorization": f"Basic {to.auth}", "Content-Type": "application/json"}
    try:
        answer = http.ask(
            method,
            f"https://{to.address}{path}",
            Limits(_TIMEOUT_S, _ANSWER_BYTES),
            tls=ssl.create_default_context(cafile=str(to.ca)),
            headers=headers,
            body=json.dumps(body).encode() if body else None,
        )
    except (OSError, ValueError) as error:
        raise RegistryError(f"{to.address} does not answer ({error}); try again, or ask the site") from error
    try:
        said = json.loads(answer.content)
    except ValueError:
        said = None
    if answer.status == _OK and said is not None:
        return said
    words = said.get("error") if isinstance(said, dict) else None
    raise RegistryError(f"{to.address}: {words or f'{answer.status} {answer.reason}'}")
