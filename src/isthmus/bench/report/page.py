"""Renders the report: one self-contained HTML page, and Markdown for the docs. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from string import Template
from typing import Any

from isthmus.bench.intervals import median
from isthmus.bench.report import figures, goals, tables
from isthmus.bench.report.plots import Plot
from isthmus.bench.results import Document

TITLE = "The papers' tables, measured here"
# Caveats about the papers' own tables, and about comparisons with ours.
NOT_COMPARABLE = (
    "Times and speed-ups of the papers and of this machine are not comparable: other processors, other problems, and "
    "here all nodes may share the cores of one machine. Ratios of two columns of one row are.",
    "The paper defines PS as score over time; its tables have score over score, as these here do.",
    "The paper computes S and PS of Slurm, too, from Kubernetes' run of one rank (103.181 s, 0.549 Gflop/s): 1.65 and "
    "5.81 at 16 ranks of set-up A would be 1.64 and 5.76 from Slurm's own. Here each platform has its own base.",
    "The paper's weak scaling is faster at 8 ranks than at 4, which a constant size for each rank cannot give: its "
    "sizes or its grids were not constant. Here they are.",
    "In the paper Slurm is slower than Kubernetes in one row of strong scaling alone, 12 ranks of set-up B (64.932 and "
    "64.226 s), though Slurm's score is the higher one there.",
    "The paper's finite elements are Ansys APDL, its HPCG is 3.1, the other paper's HPL is 2.3; here they are dolfinx, "
    "and programs of our own after the published descriptions of HPCG and HPL, with their checks of the result.",
    "A pod network here is VXLAN, and jobs use the hosts' network; the papers' networks are others.",
)
_PLAIN = (
    "The plain Kubernetes has nodes of its own, and another network of pods. Its workers request no more CPUs than a "
    "node there has, while Slurm's nodes may declare more than the machine has."
)
_INTERVALS = (
    "Ratios are of pairs within a round; the value is their median, and in brackets its 95 % interval by the sign "
    "test, which assumes nothing about how they are distributed. With fewer than six pairs there is none."
)
_PAGE = Template("""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>$title</title>
<link rel="icon" href="data:,">
<style>
:root { color-scheme: light dark; --paper: #fff; --ink: #1c2330; --faint: #8a93a3; --line: #d5dae2;
  --first: #2563a8; --second: #c2571a; --third: #2d7d46; --fourth: #7b4397; --fifth: #a3325b; --sixth: #5f6b2b;
  --band: #f4f6f9; }
@media (prefers-color-scheme: dark) { :root { --paper: #14181f; --ink: #e4e8ee; --faint: #8a93a3; --line: #333b48;
  --first: #6aa7e8; --second: #f0924f; --third: #6cc184; --fourth: #c08fd8; --fifth: #e58aa9; --sixth: #b9c36a;
  --band: #1c222c; } }
body { margin: 0 auto; max-width: 72rem; padding: 1rem; background: var(--paper); color: var(--ink);
  font: 16px/1.5 system-ui, sans-serif; }
h1, h2 { line-height: 1.2; } h2 { margin-top: 2.5rem; }
.wide { overflow-x: auto; } table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: .9rem; }
th, td { padding: .35rem .6rem; border-bottom: 1px solid var(--line); text-align: left; vertical-align: top; }
th { background: var(--band); } td:first-child { font-weight: 600; }
.plots { display: grid; gap: 1rem; grid-template-columns: repeat(auto-fill, minmax(min(100%, 26rem), 1fr)); }
.plots svg { width: 100%; height: auto; } .yes { color: var(--third); } .no { color: var(--second); }
dt { font-weight: 600; } dd { margin: 0 0 .4rem; overflow-wrap: anywhere; }
</style>
</head>
<body>
<h1>$title</h1>
$body
</body>
</html>
""")


def html(document: Document, drawn: Sequence[Plot], notes: Sequence[str] = ()) -> str:
    """Return the page.

    Args:
        document: what was measured.
        drawn: plots.
        notes: remarks on the measurement, a paragraph each.
    """
    return _PAGE.substitute(title=TITLE, body="\n".join(_sections(document, drawn, notes)))


def markdown(document: Document, drawn: Sequence[Plot], folder: str, page: str, notes: Sequence[str] = ()) -> str:
    """Return the report as Markdown.

    Args:
        document: what was measured.
        drawn: plots.
        folder: where their files are, from where the Markdown is.
        page: the HTML page, from there.
        notes: remarks on the measurement, a paragraph each.
    """
    # Each page of the docs starts with its purpose.
    lines = [
        f"# {TITLE}",
        "",
        f"This page is made from results of `isthmus bench`; [with plots as one page]({page}).",
        "",
    ]
    lines += [f"- {name}: {text}" for name, text in _about(document).items()]
    lines += ["", _INTERVALS, "", "## Goals", "", *_rows(_GOALS, _goal_rows(document))]
    if notes:
        lines += ["", f"## {_NOTES}", "", *(f"- {text}" for text in notes)]
    for grid in tables.grids(document):
        lines += ["", f"## {grid.title}", "", grid.note, "", *_rows(grid.header, grid.rows)]
        for plot in drawn:
            if plot.table == grid.name:
                lines += ["", f"![{plot.title}]({folder}/papers-{plot.name}.svg)"]
    lines += ["", "## What is not comparable", "", *(f"- {text}" for text in _not_comparable(document))]
    if notes := [*_left_out(document), *_failed(document)]:
        lines += ["", "## Not run", "", *(f"- {text}" for text in notes)]
    return "\n".join(lines) + "\n"


_NOTES = "What explains the distances"
_GOALS = ("what", "paper", "goal", "measured", "met")


def _goal_rows(document: Document) -> list[tuple[str, ...]]:
    words = {True: "yes", False: "no", None: "open"}
    return [(each.what, each.paper, each.goal, each.measured, words[each.is_met]) for each in goals.goals(document)]


def _rows(header: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(header)} |"
    yield f"|{'---|' * len(header)}"
    for row in rows:
        yield f"| {' | '.join(cell.replace('|', '/') for cell in row)} |"


def _sections(document: Document, drawn: Sequence[Plot], notes: Sequence[str]) -> Iterator[str]:
    about = "".join(f"<dt>{escape(name)}</dt><dd>{escape(text)}</dd>" for name, text in _about(document).items())
    yield f"<dl>{about}</dl>\n<p>{_INTERVALS}</p>"
    yield f"<h2 id='goals'>Goals</h2>\n{_table(_GOALS, _goal_rows(document))}"
    if notes:
        yield f"<h2 id='notes'>{_NOTES}</h2>\n{_list(notes)}"
    for grid in tables.grids(document):
        plots = "\n".join(plot.svg for plot in drawn if plot.table == grid.name)
        yield f"<h2 id='{grid.name}'>{escape(grid.title)}</h2>\n<p>{escape(grid.note)}</p>"
        yield f"{_table(grid.header, grid.rows)}\n<div class='plots'>{plots}</div>"
    yield f"<h2 id='comparable'>What is not comparable</h2>\n{_list(_not_comparable(document))}"
    if notes := [*_left_out(document), *_failed(document)]:
        yield f"<h2 id='left-out'>Not run</h2>\n{_list(notes)}"


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    heads = "".join(f"<th>{escape(each)}</th>" for each in header)
    body = "\n".join(f"<tr>{''.join(_cell(each) for each in row)}</tr>" for row in rows)
    return f"<div class='wide'><table><thead><tr>{heads}</tr></thead>\n<tbody>{body}</tbody></table></div>"


def _cell(text: str) -> str:
    return f"<td class='{text}'>{text}</td>" if text in ("yes", "no") else f"<td>{escape(text)}</td>"


def _list(texts: Sequence[str]) -> str:
    return f"<ul>{''.join(f'<li>{escape(each)}</li>' for each in texts)}</ul>"


def _about(document: Document) -> dict[str, str]:
    about: Mapping[str, Any] = document.about
    machine, nodes, settings = about["machine"], about["nodes"], about["openmpi_settings"]
    when = sorted(each.when for each in document.results)
    return {
        "size": document.size,
        "when": f"{when[0]} to {when[-1]}" if when else "never",
        "cluster": f"{nodes['count']} nodes that declare {nodes['cpus']} CPUs and {nodes['memory_mib']} MiB each",
        **({"plain Kubernetes": _plain(about["plain"])} if "plain" in about else {}),
        "machine": f"{machine['processor']}, {machine['cores']} cores, {machine['memory_mib']} MiB, "
        f"Linux {machine['kernel']}",
        "load before runs": _load(figures.loads(document)),
        "versions": ", ".join(f"{name} {text}" for name, text in about["versions"].items()),
        "Open MPI, all columns": " ".join(f"{name}={text}" for name, text in settings.items()) or "defaults",
        "runs": f"{len(document.done)}, without warm-up {len([each for each in document.results if each.round])}",
    }


def _plain(found: Mapping[str, Any]) -> str:
    return (
        f"{found['count']} nodes on which pods can request {found['cpus']} CPUs and {found['memory_mib']} MiB each; "
        f"{', '.join(found['programs'])}; "
        f"{'stopped' if found['alone'] else 'up'} while other columns were measured"
    )


def _not_comparable(document: Document) -> Sequence[str]:
    return (*NOT_COMPARABLE, *([_PLAIN] if figures.has_plain(document) else []))


def _load(loads: Sequence[float]) -> str:
    if not loads:
        return "unknown"
    return f"{min(loads):.1f} to {max(loads):.1f}, median {median(loads).value:.1f}"


def _left_out(document: Document) -> Iterator[str]:
    for cell, reason in document.left_out.items():
        yield f"{cell}: {reason}"


def _failed(document: Document) -> Iterator[str]:
    for each in document.results:
        if each.error:
            yield f"{each.key} failed: {each.error.splitlines()[0]}"
