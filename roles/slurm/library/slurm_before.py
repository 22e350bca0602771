"""The module `slurm_before`: accounting, slurmctld's state and /etc/slurm of one moment, in one folder of the host.

Both daemons stand still. Each file is written beside its name, checked and renamed, in the place of an earlier one. Who
calls sees to it that no newer Slurm has changed any of it yet.
"""

from __future__ import annotations

import gzip
import os
import shutil
import tarfile
from collections.abc import Callable
from pathlib import Path

from ansible.module_utils.basic import AnsibleModule

END = b"-- Dump completed"
CONF = Path("/etc/slurm")


class KeepError(Exception):
    """Something cannot be kept."""


def settle(temporary: Path, path: Path) -> None:
    """Give a whole file its name."""
    with temporary.open("rb") as file:
        os.fsync(file.fileno())
    temporary.replace(path)


def dump(run: Callable[[list[str]], tuple[int, str, str]], database: str, path: Path) -> None:
    """Write a database down, and look whether it is whole.

    Raises:
        KeepError: it is not.
    """
    plain = path.with_suffix(".part")
    command = ["mariadb-dump", "--single-transaction", "--quick", "--hex-blob", f"--result-file={plain}", database]
    code, _, error = run(command)
    with plain.open("rb") as file:
        file.seek(max(0, plain.stat().st_size - 200))
        whole = code == 0 and END in file.read()
    if not whole:
        plain.unlink()
        raise KeepError(f"{database} cannot be written down: {error.strip()}")
    packed = path.with_suffix(".packed")
    with plain.open("rb") as file, gzip.open(packed, "wb", compresslevel=1) as out:
        shutil.copyfileobj(file, out)
    plain.unlink()
    settle(packed, path)


def pack(folder: Path, path: Path) -> None:
    """Pack a folder, and read it back."""
    temporary = path.with_suffix(".part")
    with tarfile.open(temporary, "w:gz", compresslevel=1) as archive:
        archive.add(folder, arcname=".")
    with tarfile.open(temporary) as archive:
        archive.getnames()
    settle(temporary, path)


def main() -> None:
    """Keep all three."""
    path, text = {"type": "path", "required": True}, {"type": "str", "required": True}
    module = AnsibleModule({"folder": path, "state": path, "version": text, "database": text})
    folder = Path(module.params["folder"]) / module.params["version"]
    os.umask(0o077)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    wanted = {
        "accounting.sql.gz": lambda file: dump(module.run_command, module.params["database"], file),
        "state.tar.gz": lambda file: pack(Path(module.params["state"]), file),
        "conf.tar.gz": lambda file: pack(CONF, file),
    }
    try:
        for name, keep in wanted.items():
            keep(folder / name)
    except (KeepError, OSError, tarfile.TarError) as error:
        module.fail_json(
            msg=f"{folder}: {error}; Slurm is as it was: `systemctl start slurmdbd slurmctld`, and run this again"
        )
    module.exit_json(changed=True, folder=str(folder))


if __name__ == "__main__":
    main()
