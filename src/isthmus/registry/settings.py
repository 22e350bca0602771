"""Settings of isthmus-tokend, from the playbook: accounts, quotas, and the registry's name. Reloaded on change."""

from __future__ import annotations

import base64
import binascii
import hmac
import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from isthmus.model.registry import SETTINGS_SCHEMA

_LOG = logging.getLogger(__name__)


class SettingsError(Exception):
    """The file is not to be used; the message has the remedy."""


@dataclass(frozen=True, slots=True)
class Account:
    """Who may log in.

    Attributes:
        digest: SHA-256 of the password, which is 40 random characters: nobody guesses those, however quick a guess is.
        quota_bytes: of what they push.
    """

    digest: bytes
    quota_bytes: int


@dataclass(frozen=True, slots=True)
class Settings:
    """Of the service.

    Attributes:
        service: the registry's name, the audience of tokens.
        keeper: the account that fills the site's namespaces.
        reserve_bytes: of the registry's disk that users leave free.
        accounts: name -> account.
    """

    service: str
    keeper: str
    reserve_bytes: int
    accounts: Mapping[str, Account]

    def known(self, authorization: str) -> str:
        """Return the account whose password an `Authorization` header has, "" for none (RFC 7617)."""
        scheme, _, encoded = authorization.partition(" ")
        if scheme.lower() != "basic":
            return ""
        try:
            name, colon, password = base64.b64decode(encoded, validate=True).decode().partition(":")
        except (binascii.Error, ValueError):
            return ""
        account = self.accounts.get(name)
        given = sha256(password.encode()).digest()
        return name if colon and account and hmac.compare_digest(given, account.digest) else ""


def read(path: Path) -> Settings:
    """Read the file.

    Raises:
        SettingsError: it cannot be read, or is none.
    """
    try:
        said = json.loads(path.read_text(encoding="utf-8"))
        if said["schema"] != SETTINGS_SCHEMA:
            raise SettingsError(f"{path} has schema {said['schema']}; run playbooks/apptainer.yml")
        accounts = {name: _account(each) for name, each in said["accounts"].items()}
        return Settings(str(said["service"]), str(said["keeper"]), int(said["reserve_bytes"]), accounts)
    except OSError as error:
        raise SettingsError(f"{path}: {error.strerror}; run playbooks/apptainer.yml") from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise SettingsError(f"{path} cannot be used ({error!r}); run playbooks/apptainer.yml") from error


class Current:
    """The settings of now.

    Raises:
        SettingsError: there are none to begin with.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._state, self._settings = _state(path), read(path)

    def __call__(self) -> Settings:
        """Return them; while a new file cannot be used, those of the old one."""
        if (state := _state(self._path)) != self._state:
            self._state = state
            try:
                self._settings = read(self._path)
                _LOG.info("read %s again", self._path)
            except SettingsError as error:
                _LOG.error("%s; what was there before still holds", error)
        return self._settings


def _account(said: Mapping[str, Any]) -> Account:
    return Account(bytes.fromhex(said["sha256"]), int(said["quota_bytes"]))


def _state(path: Path) -> tuple[int, int]:
    try:
        found = path.stat()
    except OSError:
        return 0, 0
    return found.st_ino, found.st_mtime_ns
