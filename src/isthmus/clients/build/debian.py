"""Debian's tools on the deployer: apt's downloader, and a minimal Debian of any release for one command.

Both take what this machine's apt takes: its mirrors, its proxies.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from isthmus.clients import process

APT_HELPER = "/usr/lib/apt/apt-helper"
# Nothing of the deployer's environment may change what comes out.
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def download(url: str, path: Path) -> None:
    """Download a file.

    Raises:
        isthmus.clients.process.ProcessError: the server does not give it.
    """
    process.run([APT_HELPER, "download-file", url, path])


def unpack(archive: Path, folder: Path) -> None:
    """Unpack a source archive without the folder that it has at its top."""
    folder.mkdir()
    process.run(["tar", "--extract", "--strip-components=1", "--no-same-owner", "-C", folder, "-f", archive])


@dataclass(frozen=True, slots=True)
class Debian:
    """A Debian to be made.

    Attributes:
        suite: its release.
        packages: what it has besides apt and the essential packages.
        sources: lines of sources.list.
        options: lines of apt.conf.
    """

    suite: str
    packages: Sequence[str]
    sources: Sequence[str]
    options: Sequence[str]

    def run(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        *,
        inside: Mapping[str, Path],
        result: tuple[str, Path],
    ) -> None:
        """Run a command in it as root, and keep one file of what is there afterwards.

        Args:
            command: what to run there.
            environment: the variables it sees, besides PATH.
            inside: folder there -> the folder here whose content it has.
            result: the file there, and its path here.

        Raises:
            isthmus.clients.process.ProcessError: with the end of what mmdebstrap or the command said.
        """
        variables = [f"{name}={value}" for name, value in {"PATH": _PATH, **environment}.items()]
        made, kept = result
        hooks = [
            *(f'mkdir -p "$1"{shlex.quote(folder)}' for folder in inside),
            *(f"sync-in {shlex.join([str(content), folder])}" for folder, content in inside.items()),
            f'chroot "$1" {shlex.join(["env", "-i", *variables, *command])}',
            f"download {shlex.join([made, str(kept)])}",
        ]
        process.run(
            [
                *("mmdebstrap", "--variant=apt", "--format=null", "--dpkgopt=force-unsafe-io"),
                f"--include={','.join(self.packages)}",
                *(f"--aptopt={option}" for option in self.options),
                *(f"--customize-hook={hook}" for hook in hooks),
                *(self.suite, "-", *self.sources),
            ]
        )
