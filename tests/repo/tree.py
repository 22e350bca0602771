"""The tree's files, without what git ignores, and its YAML."""

import re
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[2]


@cache
def files(*patterns: str) -> list[Path]:
    """Return the files that match one of git's patterns; links are left out."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", *patterns]
    listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    paths = (ROOT / name for name in sorted(set(listed.split("\0"))) if name)
    return [path for path in paths if path.is_file() and not path.is_symlink()]


def shown(path: Path) -> str:
    """Return a path as messages show it."""
    return path.relative_to(ROOT).as_posix()


def lines(path: Path) -> int:
    """Count the lines of a file."""
    return len(path.read_text().splitlines())


def names(folder: str, kind: str = "*") -> set[str]:
    """Return the names, without suffix, of what a folder holds and git knows."""
    held = {path.relative_to(ROOT / folder).parts[0] for path in files(folder)}
    return {Path(name).stem for name in held if Path(name).match(kind)}


def load(path: Path) -> Any:
    """Read a YAML file; tags of Ansible count as plain text."""
    return yaml.load(path.read_text(), Loader=_Loader)  # noqa: S506


class _Loader(yaml.CSafeLoader):
    pass


_Loader.add_multi_constructor("!", lambda loader, suffix, node: str(node.value))


def driver_pattern(driver: str) -> re.Pattern[str]:
    """Return what names a network driver; one has the name of the plugins' interface, which others use as well."""
    if driver == "cni":
        return re.compile(r"""Driver\.CNI\b|drivers\.cni\b|["']cni["']|(?<!_)network_cni_(?!lists\b|places\b)""")
    return re.compile(driver, re.IGNORECASE)
