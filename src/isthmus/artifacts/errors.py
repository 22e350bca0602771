"""What can go wrong on the way to a program."""

from __future__ import annotations

from isthmus.filters.errors import InputError


class WayError(Exception):
    """One way does not give a program; the next may."""


class ChecksumError(Exception):
    """A file is not what was promised. No other way is tried: somebody must look at it."""

    def __init__(self, file: str, expected: str, found: str, remedy: str) -> None:
        super().__init__(f"{file}: sha256 is {found}, expected {expected}; {remedy}")


class ObtainError(InputError):
    """No way gives a program."""

    def __init__(self, program: str, said: list[str]) -> None:
        ways = "\n".join(f"  {line}" for line in said)
        super().__init__(
            f"no way gives {program}:\n{ways}\n",
            "name more ways in artifacts_order, or give a mirror that has it in artifacts_mirror",
        )
