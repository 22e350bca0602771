"""What MkDocs calls while it builds the site."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File

from handbook import commands, metrics, packages, pods, reasons, variables
from handbook.diagrams import fence

ROOT = Path(__file__).parents[2]
# Pages that are in no folder: address -> what writes it.
GENERATED = {
    "reference/commands.md": lambda root: commands.text(),
    "reference/variables.md": variables.text,
    "reference/pods.md": pods.text,
    "reference/reasons.md": reasons.text,
    "reference/metrics.md": metrics.text,
    "reference/packages.md": packages.text,
}
_LINK = re.compile(r"\[([^\]]*)\]\(([^)#\s:]+)\)")


def on_config(config: Any) -> Any:
    """Have diagrams drawn here, not by the reader's browser."""
    fences = [{"name": "mermaid", "class": "diagram", "format": fence}]
    config["mdx_configs"].setdefault("pymdownx.superfences", {})["custom_fences"] = fences
    return config


def on_files(files: Any, config: Any) -> Any:
    """Add the pages that the code writes."""
    for address, write in GENERATED.items():
        files.append(File.generated(config, address, content=write(ROOT)))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Show links that leave docs/ as paths: the site has no copy of the tree."""
    del files
    docs = Path(config["docs_dir"])
    place = (docs / page.file.src_uri).parent

    def shown(found: re.Match[str]) -> str:
        target = (place / found[2]).resolve()
        if target.is_relative_to(docs) or not target.is_relative_to(ROOT) or not target.exists():
            return found[0]
        path = f"`{target.relative_to(ROOT).as_posix()}`"
        return path if found[1].strip("`") in (path.strip("`"), target.name) else f"{found[1]} ({path})"

    return _LINK.sub(shown, markdown)
