"""The module `slurm_before`: accounting, slurmctld's state and /etc/slurm in one folder of the host.

Each file is written beside its name, read back and renamed, in the place of an earlier one. An
upgrade calls this while both daemons stand still, and before a newer Slurm has changed any of it; a backup calls it
while they run: the database is of one moment then, and a file of the state that changes meanwhile is read again.
"""

from __future__ import annotations

import gzip
import os
import shutil
import tarfile
from collections.abc import Callable
from pathlib import Path

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.dpkg import installed, question

END = b"-- Dump completed"
CONF = Path("/etc/slurm")
TRIES = 5


class KeepError(Exception):
    """Something cannot be kept."""


def publish(temporary: Path, path: Path) -> None:
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
    publish(packed, path)


def pack(folder: Path, path: Path) -> None:
    """Pack a folder, and read it back."""
    temporary = path.with_suffix(".part")
    for tries_left in reversed(range(TRIES)):
        try:
            with tarfile.open(temporary, "w:gz", compresslevel=1) as archive:
                archive.add(folder, arcname=".")
            break
        except OSError:  # slurmctld renames its files: one is gone, or shorter, by now
            if not tries_left:
                raise
    with tarfile.open(temporary) as archive:
        archive.getnames()
    publish(temporary, path)


def main() -> None:
    """Keep all three."""
    path, text = {"type": "path", "required": True}, {"type": "str", "required": True}
    module = AnsibleModule({"folder": path, "state": path, "database": text})
    folder = Path(module.params["folder"])
    os.umask(0o077)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    wanted = {
        "accounting.sql.gz": lambda file: dump(module.run_command, module.params["database"], file),
        "state.tar.gz": lambda file: pack(Path(module.params["state"]), file),
        "conf.tar.gz": lambda file: pack(CONF, file),
    }
    _, output, _ = module.run_command(question(["slurmctld"]), check_rc=True)
    try:
        (folder / "slurm.version").write_text(f"{installed(output)['slurmctld'].version}\n")
        for name, keep in wanted.items():
            keep(folder / name)
    except KeyError:
        module.fail_json(
            msg="slurmctld is not wholly installed here; finish that (`dpkg --configure -a`), and run again"
        )
    except (KeepError, OSError, tarfile.TarError) as error:
        module.fail_json(
            msg=f"{folder}: {error}; Slurm is as it was: `systemctl start slurmdbd slurmctld`, and run this again"
        )
    module.exit_json(changed=True, folder=str(folder))


if __name__ == "__main__":
    main()
