"""An executed notebook as a page of the site: "In short" first, printed tables open and marked,
claims in one table each."""

import html
import re
from pathlib import Path

import nbformat

from visprompt import papers
from visprompt.words import WEIGHTS

from ..pages.friendly import friendly
from ..pages.judging import found_text
from . import claims, front, number_pages, stories
from .tables import badge, table

LABEL = re.compile(r"(?m)^\(([a-z]+\.[a-z0-9-]+)\)=$")
TITLE = re.compile(r"(?m)^# .*$")
CLAIM = re.compile(r'claims\.html#([a-z0-9.-]+)"')
PRINTED = re.compile(r"Table ([A-Z]?\d+)(?: \([a-z]\))? as printed")
HEAD = re.compile(r"(?m)^##? ")
RUNS = ("## How the runs were made", "## The runs")
NOT_RUN = '<div class="vp-notrun">'
ROWS = 8  # of its table


def arrange(notebook: nbformat.NotebookNode, name: str, results: dict, root: Path) -> None:
    """Rearrange what a notebook shows for readers of the site; the notebook itself is offered as it
    ran."""
    gather_claims(notebook, results)
    open_printed(notebook, results)
    runs_last(notebook)
    title = next(cell for cell in notebook.cells if cell.cell_type == "markdown")
    first = in_short(name, results, root)
    if story := stories.told(root).get(name):
        first = f"{stories.opening(story, results)}\n\n{first}"
        notebook.cells.append(nbformat.v4.new_markdown_cell(stories.ending(story, results)))
    first = friendly(first)
    title.source = TITLE.sub(lambda match: f"{match[0]}\n\n{first}", title.source, count=1)


def shown_html(output) -> str:
    """The HTML of an output; "" where it has none."""
    return "".join(output.get("data", {}).get("text/html", ""))


def gather_claims(notebook: nbformat.NotebookNode, results: dict) -> None:
    """Put the claims of a section, which stand one by one where they were judged, into one table at
    its end."""
    found, last = [], None
    for cell in [*notebook.cells, None]:
        if cell is None or (cell.cell_type == "markdown" and HEAD.search(cell.source)):
            if found:
                shown = claims.compact(found, results)
                last.outputs.append(
                    nbformat.v4.new_output("display_data", data={"text/html": shown})
                )
            found, last = [], None
        if cell is None or cell.cell_type != "code":
            continue
        kept = []
        for output in cell.outputs:
            if shown_html(output).startswith('<p class="vp-claim">'):
                ids = CLAIM.findall(shown_html(output))[-1:]
                found += [id for id in ids if id not in found]
                last = cell
            else:
                kept.append(output)
        cell.outputs = kept


def open_printed(notebook: nbformat.NotebookNode, results: dict) -> None:
    """Show printed tables open, with the marks of the audit, and a way to the page of numbers and
    back."""
    marks = number_pages.marks(results)
    here = None
    for cell in notebook.cells:
        labels = LABEL.findall(cell.source) if cell.cell_type == "markdown" else []
        here = labels[-1].split(".")[0] if labels else here
        for output in cell.get("outputs", []):
            shown = shown_html(output)
            named = PRINTED.search(shown) if 'class="vp-printed"' in shown else None
            if named is None:
                continue
            id = f"{here}.table-{named[1].lower()}"
            caption = html.escape(named[0])
            numbers = f'<a href="../numbers-{here}.html#n-{id}">its cells, recomputed</a>'
            output["data"]["text/html"] = (
                f'<div class="vp-printed"><p class="vp-printed-head"><b>{caption}</b> · '
                f"{numbers}</p>"
                f"{number_pages.marked(id, papers.published(id), marks, '../')}</div>"
            )


def take_not_run(notebook: nbformat.NotebookNode, results: dict) -> list[tuple[str, str]]:
    """Take the boxes of what was not run off their sections, for one place at the end of the page.

    Where a section shows nothing else, its reason stays as a line.

    Returns:
        (artifact, box as HTML) of each.
    """
    taken, here = [], ""
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            here = [here, *LABEL.findall(cell.source)][-1]
            continue
        kept = []
        for output in cell.outputs:
            shown = shown_html(output)
            if not here or not shown.startswith(NOT_RUN):
                kept.append(output)
                continue
            taken.append((here, shown))
            if not results["artifacts"][here]["shows"]:
                why = shown.split(" This would run it:")[0]
                line = f'{why} <a href="#not-run">How to run it.</a></div>'
                kept.append(nbformat.v4.new_output("display_data", data={"text/html": line}))
        cell.outputs = kept
    return taken


def runs_last(notebook: nbformat.NotebookNode) -> None:
    """Put the section on how the runs were made, with recipe and rates, behind what the page is
    about."""
    kept, moved, moving = [], [], False
    for cell in notebook.cells:
        if cell.cell_type == "markdown" and HEAD.search(cell.source):
            moving = cell.source.lstrip().startswith(RUNS)
        (moved if moving else kept).append(cell)
    notebook.cells = kept + moved


def in_short(name: str, results: dict, root: Path) -> str:
    """Below a page's story: whose paper, what was easy and hard, and its core claims as a table."""
    slug = paper_of(name, results)
    told = front.told(root)
    if slug not in told:
        return ""
    paper = told[slug]
    parts = [f'<p class="vp-how vp-about">{front.about(paper)}</p>']
    if name == paper.chapters[0]:
        easy, hard = html.escape(paper.easy), html.escape(paper.hard)
        parts.append(f"<p><b>Easy:</b> {easy} <b>Hard:</b> {hard}</p>")
    elif whole := results["titles"].get(paper.chapters[0]):
        parts.append(
            f'<p>A part of <a href="{paper.chapters[0]}.html">{html.escape(whole)}</a>.</p>'
        )
    asked = of_page(name, slug, paper, results)
    if asked:
        parts.append(first_table(asked, results))
    return f'<div class="vp-in-short"><p class="vp-short-head">In short</p>{"".join(parts)}</div>\n'


def paper_of(name: str, results: dict) -> str:
    """The paper whose artifacts a notebook shows; "" where it shows those of none, or of
    several."""
    return papers.paper_of(
        id for id, entry in results["artifacts"].items() if entry["notebook"] == name
    )


def of_page(name: str, slug: str, paper: front.Paper, results: dict) -> list[papers.Claim]:
    """The claims that a page begins with: of a paper's first page its core ones, of others those
    judged there."""
    if name == paper.chapters[0]:
        return [claim for claim in papers.claims(slug) if claim.weight == WEIGHTS[0]][:ROWS]
    here = [
        claim for claim in papers.claims(slug) if results["claims"][claim.id]["notebook"] == name
    ]
    here = [claim for claim in here if results["claims"][claim.id]["estimate"] is not None]
    here.sort(key=lambda claim: WEIGHTS.index(claim.weight))
    return here[:ROWS]


def first_table(asked: list[papers.Claim], results: dict) -> str:
    """Claims in four columns, a line or two each; the statement leads to all that is known of the
    claim."""
    rows = []
    for claim in asked:
        found = results["claims"][claim.id]
        where = (
            f'<a href="../claims.html#{html.escape(claim.id)}"><span '
            f'class="vp-clamp">{claims.statement(claim)}</span></a>'
        )
        rows.append(
            [where, claims.printed(claim), found_text(claim, found), badge(found["verdict"])]
        )
    return table(
        ["What the paper says", "Printed, or required", "Ours", "Verdict"],
        rows,
        kind="vp-core-claims vp-cards",
    )
