"""Files of role slurm that are added to or compared, not simply written."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path

from isthmus.filters.files import files_with_block

_MARK = "# {mark} isthmus: slurm_openmpi_params"


def slurm_openmpi(text: str, params: Mapping[str, object]) -> str:
    """Open MPI's file of parameters with the role's block in it, in its old place or at the end; the rest stays."""
    return files_with_block(text, _MARK, "".join(f"{name} = {value}\n" for name, value in params.items()))


def slurm_protected(content: str, ownership: str) -> str:
    """What the module slurm_state says of a secret that is right: `user:group mode sha256`."""
    return _protected(content.encode(), ownership)


def slurm_protected_file(path: str, ownership: str) -> str:
    """The same for a file of the deployer, whose bytes may be no text."""
    return _protected(Path(path).read_bytes(), ownership)


def _protected(content: bytes, ownership: str) -> str:
    return f"{ownership} {sha256(content).hexdigest()}"
