"""Errors of obtaining a program."""

from __future__ import annotations

from isthmus.filters.errors import InputError


class WayError(Exception):
    """One way failed; the next one is tried."""


class ChecksumError(Exception):
    """A file has another checksum than expected. No other way is tried: an administrator must examine it."""

    def __init__(self, file: str, expected: str, found: str, remedy: str) -> None:
        super().__init__(f"{file}: sha256 is {found}, expected {expected}; {remedy}")


class ObtainError(InputError):
    """All ways to a program failed."""

    def __init__(self, program: str, said: list[str]) -> None:
        ways = "\n".join(f"  {line}" for line in said)
        super().__init__(
            f"all ways to {program} failed:\n{ways}\n",
            "name more ways in artifacts_order, or give a mirror that has it in artifacts_mirror",
        )
