"""The node image's recipe: the sources of its packages, and the hash that is its name.

Package sources, proxies and date checks are those of the deployer's apt, so that a site with mirrors needs no second
configuration, and the tree contains none.
"""

from __future__ import annotations

import hashlib
import json
import re
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import yaml

from isthmus.filters.errors import InputError

DEBIAN_RELEASE = re.compile(r"^(?P<codename>bookworm|trixie|forky|sid)(?P<pocket>-updates|-security)?$")
APT_OPTION = re.compile(r'^Acquire::(https?::\S*|Check-\S+) "[^"\n]*";$')


def local_apt_sources(targets: str, suite: str) -> list[str]:
    """Return lines of a sources.list for `suite`, from the deployer's mirrors.

    Args:
        targets: `apt-get indextargets --format '$(RELEASE) $(REPO_URI) $(COMPONENT)'`, a line per index.
        suite: code name of the release to install.

    Returns:
        The release itself first, then its updates and security updates where the deployer has them.

    Raises:
        InputError: the deployer's apt has no Debian mirror.
    """
    found: dict[str, str] = {}
    for line in targets.splitlines():
        release, uri, component = line.split()
        match = DEBIAN_RELEASE.match(release)
        if match and component == "main":
            found.setdefault(match["pocket"] or "", uri)
    if "" not in found:
        raise InputError(
            "this machine's apt names no Debian mirror",
            "run on Debian 12 or 13, or add a mirror to /etc/apt/sources.list.d",
        )
    return [f"deb {found[pocket]} {suite}{pocket} main" for pocket in sorted(found)]


def local_apt_options(dump: str) -> list[str]:
    """Return the proxies and date checks in `apt-config dump`, which a node must share with its deployer."""
    return [line for line in dump.splitlines() if APT_OPTION.match(line)]


def image_packages(variables: Mapping[str, str]) -> list[str]:
    """Return the packages that roles install on any kind of node.

    Args:
        variables: role -> text of its vars/main.yml, where `_<role>_packages...` are plain lists, or mappings with
            lists in `names`. Templates depend on the host and are left to the role.

    Raises:
        InputError: a role has no such variable.
    """
    found: list[str] = []
    for role, text in variables.items():
        lists = [
            names
            for key, value in yaml.safe_load(text).items()
            if key.startswith(f"_{role}_packages")
            for names in _plain(value)
        ]
        if not lists:
            raise InputError(f"role {role} names no packages", f"list them as _{role}_packages in its vars/main.yml")
        found += [name for names in lists for name in names]
    return sorted(set(found))


def _plain(value: object) -> Iterable[list[str]]:
    if isinstance(value, list):
        yield value
    elif isinstance(value, dict):
        for part in value.values():
            yield part["names"]


def local_image_key(recipe: Mapping[str, Any]) -> str:
    """Return an image's key: sixteen hex digits, equal for equal recipes."""
    command = local_bootstrap_command(recipe, "")
    return hashlib.sha256(json.dumps([command, recipe], sort_keys=True).encode()).hexdigest()[:16]


# All under the lock: a concurrent second run would overwrite the image.
_WHOLE = 'tar=$1; shift; test -e "$tar" || { "$@" && sync "$tar.part" && mv "$tar.part" "$tar"; }'


def local_bootstrap_command(
    recipe: Mapping[str, Any], tar: str, arguments: Sequence[str] = (), program: Sequence[str] = ()
) -> list[str]:
    """Return the command that builds a recipe's image unless it exists; of two concurrent runs the second waits.

    Args:
        recipe: suite, packages, sources (lines), options (apt.conf lines), and optionally setup (a shell script that
            runs before packages are chosen; `$1` is the image's root).
        tar: path of the image, which is written atomically; its last step is `<tar>.customize`.
        arguments: of that step, after the image's root.
        program: script, unit, folder of the wheel, place of the venv, version; for an image with the nodes' programs.
    """
    # An image keeps its package lists: Ansible's apt module reads their age.
    return [
        *("flock", f"{tar}.lock", "sh", "-c", _WHOLE, "sh", tar),
        *("mmdebstrap", "--variant=apt", "--format=tar", "--skip=cleanup/apt/lists"),
        f"--include={','.join(recipe['packages'])}",
        *(f"--aptopt={option}" for option in recipe["options"]),
        *([f"--setup-hook={recipe['setup']}"] if "setup" in recipe else []),
        f'--customize-hook={shlex.quote(f"{tar}.customize")} "$1" {shlex.join(arguments)}'.rstrip(),
        *([_program_hook(*program)] if program else []),
        *(recipe["suite"], f"{tar}.part", *recipe["sources"]),
    ]


def _program_hook(script: str, unit: str, wheels: str, prefix: str, key: str) -> str:
    words = shlex.join([unit, prefix, key])
    return f'--customize-hook=sh {shlex.quote(script)} "$1" {shlex.quote(wheels)}/*.whl {words}'


FILTERS: dict[str, Callable[..., object]] = {
    "image_packages": image_packages,
    "local_apt_options": local_apt_options,
    "local_apt_sources": local_apt_sources,
    "local_bootstrap_command": local_bootstrap_command,
    "local_image_key": local_image_key,
}
