"""The node image's recipe: where its packages come from and which hash names it.

Package sources, proxies and dates come from the deployer's own apt, so that a site with mirrors needs no
second configuration, and none stands in the tree.
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
    """Lines of a sources.list for `suite`, from the mirrors the deployer uses.

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
    """Of `apt-config dump`, the proxies and date checks that a node must share with its deployer."""
    return [line for line in dump.splitlines() if APT_OPTION.match(line)]


def image_packages(variables: Mapping[str, str]) -> list[str]:
    """The packages that roles install, of every kind of node, each once.

    Args:
        variables: role -> text of its vars/main.yml, where `_<role>_packages...` are plain lists, or mappings with
            lists in `names`. What is a template depends on the host, and stays with the role.

    Raises:
        InputError: a role names none, so its variables have other names than thought.
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
    """Sixteen hex digits that name an image: equal recipes, equal key."""
    command = local_bootstrap_command(recipe, "")
    return hashlib.sha256(json.dumps([command, recipe], sort_keys=True).encode()).hexdigest()[:16]


# All under the lock: a second run that began before the name was given would write over what is given it.
_WHOLE = 'tar=$1; shift; test -e "$tar" || { "$@" && sync "$tar.part" && mv "$tar.part" "$tar"; }'


def local_bootstrap_command(
    recipe: Mapping[str, Any], tar: str, arguments: Sequence[str] = (), program: Sequence[str] = ()
) -> list[str]:
    """The command that makes a recipe's image where it is not there; of two runs at once one does, the other waits.

    Args:
        recipe: suite, packages, sources (lines), options (apt.conf lines), and if wanted setup (a shell script that
            runs before packages are chosen; `$1` is the image's root).
        tar: path of the image, which is whole or not there; its last step is `<tar>.customize`.
        arguments: what that step gets besides the image's root.
        program: script, unit, folder of the wheel, place of the venv, version; where the nodes' programs are wanted.
    """
    # An image keeps its package lists: their age is then what Ansible's apt module takes it for.
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
