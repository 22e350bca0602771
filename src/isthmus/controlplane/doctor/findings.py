"""What `isthmus doctor` says."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Level(StrEnum):
    """How bad a finding is."""

    OK = "ok"
    WARNING = "warning"
    FAILURE = "failure"


@dataclass(frozen=True, slots=True)
class Finding:
    """One examination's result; `remedy` is empty where all is well."""

    level: Level
    what: str
    remedy: str = ""
