"""The module `slurm_debs`: the packages of the present Slurm and of the next one, side by side on disk.

Before anything is switched: an upgrade then needs no mirror, and neither has the way back, whose packages mirrors drop.
The folder has one folder for each version. Whether apt can install the new ones is tried before they are fetched.
The plugin mpi/pmix that the deployer has built for a version joins them, so that they are switched together.
"""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.dpkg import SLURM_PMIX, offered, question, slurm_programs

# One that every host has.
ANY = "slurm-client"
ARCHIVES = Path("/var/cache/apt/archives")
NEEDED_MIB = 200
APT = ["apt-get", "--assume-yes", "--no-install-recommends", "--allow-change-held-packages", "--allow-downgrades"]


class DebError(Exception):
    """Packages cannot be had."""


def fits(version: str, wanted: str) -> bool:
    """Return whether a version is the wanted one, which may be cut off between its parts."""
    return version == wanted or (version.startswith(wanted) and version[len(wanted)] in ".-+~")


def choose(offers: list[tuple[str, str]], wanted: str) -> str:
    """The newest version that fits; "" for none."""
    return next((version for name, version in offers if name == ANY and fits(version, wanted)), "")


def removed(simulated: str) -> list[str]:
    """Packages that apt would remove."""
    return re.findall(r"^Remv (\S+)", simulated, re.MULTILINE)


def archive(name: str, version: str) -> str:
    """How apt names a package's file, up to its architecture."""
    return f"{name}_{version.replace(':', '%3a')}_"


class Store:
    """The folder of packages on this host."""

    def __init__(self, module: AnsibleModule, folder: Path, pmix: Path) -> None:
        self.module = module
        self.folder = folder
        self.pmix = pmix
        self.done: list[str] = []

    def run(self, *command: str, cwd: Path | None = None) -> str:
        """Run a program.

        Raises:
            DebError: it failed.
        """
        code, out, error = self.module.run_command(list(command), cwd=cwd and str(cwd))
        if code:
            raise DebError(f"`{' '.join(command)}` failed: {(error or out).strip()}")
        return str(out)

    def keep(self, packages: dict[str, str]) -> None:
        """Fetch what is installed, unless it is kept already.

        Raises:
            DebError: no mirror has it any more.
        """
        for name, version in packages.items():
            place = self.folder / version
            if list(place.glob(f"{archive(name, version)}*")):
                continue
            self.done.append(f"{name} {version}")
            place.mkdir(mode=0o755, parents=True, exist_ok=True)
            for found in ARCHIVES.glob(f"{archive(name, version)}*"):
                shutil.copy(found, place)
                break
            else:
                self.fetch(name, version, place)

    def fetch(self, name: str, version: str, place: Path) -> None:
        """Fetch one package."""
        try:
            self.run("apt-get", "download", f"{name}={version}", cwd=place)
        except DebError as error:
            raise DebError(
                f"the package {name} {version}, which this host has, cannot be fetched for the way back ({error});"
                f" put its file into {place}, from a mirror of its time or another host's /var/cache/apt/archives"
            ) from error

    def find(self, wanted: str) -> str:
        """The newest version that fits and can be had, from a mirror or because it was kept.

        Raises:
            DebError: there is none.
        """
        offers = offered(self.run("apt-cache", "madison", ANY))
        offers += [(ANY, place.name) for place in sorted(self.folder.iterdir()) if list(place.glob(f"{ANY}_*"))]
        if not (version := choose(offers, wanted)):
            raise DebError(f"no source of this host has Slurm {wanted}; correct slurm_version or slurm_package_source")
        return version

    def bring(self, packages: dict[str, str], version: str) -> None:
        """Fetch another version of what is installed, with what it needs.

        Raises:
            DebError: apt cannot install it, or would have to remove something.
        """
        offers = offered(self.run("apt-cache", "madison", *packages))
        own = [str(place) for place in [self.built(version)] if place.is_file()]
        if list((self.folder / version).glob(f"{ANY}_*")) and (ANY, version) not in offers:
            return
        wanted = [f"{name}={version}" for name in packages if (name, version) in offers] + own
        if going := removed(self.run(*APT, "--simulate", "install", *wanted)):
            raise DebError(
                f"apt would remove {', '.join(going)} for Slurm {version}; remove what needs them, or hold the upgrade"
            )
        place = self.folder / version
        (place / "partial").mkdir(mode=0o755, parents=True, exist_ok=True)
        before = set(place.glob("*.deb"))
        self.run(*APT, "--download-only", "-o", f"Dir::Cache::archives={place}", "install", *wanted)
        self.done += sorted(path.name for path in {*place.glob("*.deb")} - before)

    def built(self, version: str) -> Path:
        """Where the deployer puts the plugin mpi/pmix that it has built for a version."""
        return self.pmix / f"{version}.deb"

    def join(self, version: str) -> None:
        """Lay the plugin mpi/pmix beside a version's packages, if it is built for that."""
        built, place = self.built(version), self.folder / version / f"{SLURM_PMIX}.deb"
        if not built.is_file() or (place.is_file() and place.read_bytes() == built.read_bytes()):
            return
        place.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
        shutil.copyfile(built, place)
        self.done.append(f"{SLURM_PMIX} for {version}")

    def require(self, version: str) -> None:
        """Refuse a version for which the plugin mpi/pmix is not built.

        Raises:
            DebError: it is built for another one.
        """
        if not self.built(version).is_file():
            raise DebError(
                f"Slurm {version} has no plugin mpi/pmix, and this Isthmus builds it for"
                f" {', '.join(sorted(place.stem for place in self.pmix.glob('*.deb')))}; set slurm_version to that if a"
                " source of this host has it, or slurm_mpi_default: pmi2, or use the next Isthmus"
            )

    def room(self) -> None:
        """Refuse a disk that is nearly full.

        Raises:
            DebError: it is.
        """
        self.folder.mkdir(mode=0o755, parents=True, exist_ok=True)
        free = os.statvfs(self.folder)
        if free.f_bavail * free.f_frsize < NEEDED_MIB << 20:
            raise DebError(f"{self.folder} has less than {NEEDED_MIB} MiB left; make room there")


def main() -> None:
    """Fetch both, without a version what is installed; a run that finds them asks apt's lists alone."""
    text = {"type": "str", "default": ""}
    path = {"type": "path", "required": True}
    needed = {"type": "bool", "default": False}
    module = AnsibleModule(
        {"version": text, "folder": path, "pmix": path, "pmix_needed": needed}, supports_check_mode=False
    )
    store = Store(module, Path(module.params["folder"]), Path(module.params["pmix"]))
    wanted = module.params["version"]
    try:
        store.room()
        there = slurm_programs(store.run(*question()))
        packages = {name: package.version for name, package in there.items()}
        store.keep(packages)
        version = store.find(wanted) if wanted else ""
        if module.params["pmix_needed"]:
            store.require(version)
        if version and any(each != version for each in packages.values()):
            store.bring(packages, version)
        for each in sorted({*packages.values(), version} - {""}):
            store.join(each)
    except (DebError, OSError) as error:
        module.fail_json(msg=str(error))
    module.exit_json(changed=bool(store.done), new=version, old=sorted({*packages.values()}), fetched=store.done)


if __name__ == "__main__":
    main()
