"""Files of role slurm that are edited or compared."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path

from isthmus.filters.files import files_with_block

_MARK = "# {mark} isthmus: slurm_openmpi_params"


def slurm_openmpi(text: str, params: Mapping[str, object]) -> str:
    """Return Open MPI's parameter file with the role's block, in its old place or at the end."""
    return files_with_block(text, _MARK, "".join(f"{name} = {value}\n" for name, value in params.items()))


def slurm_protected(content: str, ownership: str) -> str:
    """Return the result of module slurm_state for a correct secret: `user:group mode sha256`."""
    return _protected(content.encode(), ownership)


def slurm_protected_file(path: str, ownership: str) -> str:
    """The same for a file of the deployer, which may be binary."""
    return _protected(Path(path).read_bytes(), ownership)


def _protected(content: bytes, ownership: str) -> str:
    return f"{ownership} {sha256(content).hexdigest()}"
