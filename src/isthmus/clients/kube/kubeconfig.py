"""How a program gets into an API server: the kubeconfig that Isthmus wrote.

Only what Isthmus writes is read: one context, an authority and a client certificate, as files or in the kubeconfig
itself. Other credentials (tokens, programs to run) are refused by name, so that nothing runs because a file says so.
"""

from __future__ import annotations

import os
import ssl
from base64 import b64decode
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml


class KubeconfigError(Exception):
    """A kubeconfig cannot be used.

    Attributes:
        why: without the remedy, which is another where Isthmus has not written it.
    """

    def __init__(self, path: Path, why: object) -> None:
        self.why = str(why)
        super().__init__(f"{path} cannot be used: {why}; write it again with `isthmus up`")


@dataclass(frozen=True, slots=True)
class Kubeconfig:
    """What the current context of a kubeconfig has; certificates and key are PEM."""

    path: Path
    server: str
    ca: bytes
    certificate: bytes
    key: bytes

    def tls(self) -> ssl.SSLContext:
        """Return a context that trusts the cluster's authority alone and shows the client's certificate.

        Raises:
            KubeconfigError: what it holds are no certificates, or no key of them.
        """
        try:
            context = ssl.create_default_context(cadata=self.ca.decode("ascii"))
            with _in_memory(self.certificate) as certificate, _in_memory(self.key) as key:
                context.load_cert_chain(certificate, key, password=_no_password)
        except (ssl.SSLError, ValueError) as error:
            raise KubeconfigError(self.path, f"certificates and key do not serve ({error})") from error
        return context


def read(path: Path) -> Kubeconfig:
    """Read a kubeconfig; paths in it are as seen from its folder.

    Raises:
        KubeconfigError: it lacks something, or has other credentials than a client certificate.
    """
    try:
        found = yaml.safe_load(path.read_text(encoding="utf-8"))
        context = _named(found, "context", found["current-context"])
        cluster, user = (_named(found, kind, context[kind]) for kind in ("cluster", "user"))
        server = cluster["server"]
        if not server.startswith("https://"):
            raise ValueError(f"its server is {server}, no https:// URL")
        if not {"client-certificate", "client-certificate-data"} & set(user):
            raise ValueError("its user has no client certificate, which alone is taken")
        parts = ((cluster, "certificate-authority"), (user, "client-certificate"), (user, "client-key"))
        return Kubeconfig(path, server.rstrip("/"), *(_content(of, key, path.parent) for of, key in parts))
    except KeyError as error:
        raise KubeconfigError(path, f"it has no {error}") from error
    except (OSError, ValueError, TypeError, AttributeError, yaml.YAMLError) as error:
        raise KubeconfigError(path, error) from error


def _named(found: dict[str, Any], kind: str, name: str) -> dict[str, Any]:
    for each in found[f"{kind}s"]:
        if each["name"] == name:
            content: dict[str, Any] = each[kind]
            return content
    raise ValueError(f"it has no {kind} {name}")


def _content(found: dict[str, Any], key: str, folder: Path) -> bytes:
    inline = found.get(f"{key}-data")
    return b64decode(inline, validate=True) if inline else (folder / found[key]).read_bytes()


@contextmanager
def _in_memory(content: bytes) -> Iterator[str]:
    """Give a path for what OpenSSL reads from files alone: the key must not be written to a disk again."""
    with os.fdopen(os.memfd_create("pem"), "wb") as file:
        file.write(content)
        file.flush()
        yield f"/proc/self/fd/{file.fileno()}"


def _no_password() -> str:
    # Without this OpenSSL would ask at the terminal.
    raise ValueError("the key has a password")
