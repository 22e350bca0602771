"""Renders the report on the deployer: python -m isthmus.bench.report.main RESULTS FOLDER."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from isthmus.bench import results
from isthmus.bench.report import page
from isthmus.bench.report.plots import plots
from isthmus.bench.results import ResultsError
from isthmus.support import durable

HTML = "papers-report.html"
MARKDOWN = "papers.md"
PLOTS = "figures"


def write(source: Path, folder: Path, notes: Sequence[str] = ()) -> list[Path]:
    """Write page, Markdown and plots; return their paths.

    Raises:
        ResultsError: the source holds no results.
    """
    document = results.read(source)
    drawn = plots(document)
    (folder / PLOTS).mkdir(parents=True, exist_ok=True)
    files = {
        folder / HTML: page.html(document, drawn, notes),
        folder / MARKDOWN: page.markdown(document, drawn, PLOTS, HTML, notes),
        **{folder / PLOTS / f"papers-{plot.name}.svg": plot.svg for plot in drawn},
    }
    for path, content in files.items():
        durable.write(path, content)
    return list(files)


def main() -> int:
    """Write the report; the exit status is 1 where there are no results."""
    parser = argparse.ArgumentParser(prog="report", description="Compare results of `isthmus bench` with the papers.")
    parser.add_argument("results", type=Path, metavar="RESULTS", help="the results of `isthmus bench run`")
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="for papers-report.html, papers.md and figures/")
    parser.add_argument("--notes", type=Path, metavar="FILE", help="paragraphs that explain what was measured")
    arguments = parser.parse_args()
    try:
        text = arguments.notes.read_text(encoding="utf-8") if arguments.notes else ""
        notes = [" ".join(each.split()) for each in text.split("\n\n") if each.strip()]
        made = write(arguments.results, arguments.folder, notes)
    except (ResultsError, OSError) as error:
        print(f"report: {error}", file=sys.stderr)
        return 1
    print(*made[:2], sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
