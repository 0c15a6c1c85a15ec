"""The box "Rerun this page" at the end of a page: its parameters, and the commands for what is
shown and for the papers' scale."""

import csv
import html
from collections import Counter
from collections.abc import Sequence

import nbformat

from visprompt import papers
from visprompt.paths import MANIFESTS

from ..pages.friendly import counted
from ..studies.forecast import speed_of, usual_precision
from .tables import printed_name

ONE_CELL = "one_cell"  # the notebook of one printed number, which is not a page
TAGS = ("parameters", "injected-parameters")  # of papermill


def with_box(
    notebook: nbformat.NotebookNode,
    name: str,
    found: dict,
    took: Sequence[tuple[float, str]],
    left: Sequence[tuple[str, str]] = (),
) -> None:
    """Move the cells of parameters into a box at the end of the page.

    Args:
        found: the site's results.
        left: what was not run: (artifact, box as HTML).
        took: the seconds of each record that the page shows, and the machine.
    """
    tagged = {
        tag: cell for cell in notebook.cells for tag in TAGS if tag in cell.metadata.get("tags", [])
    }
    notebook.cells = [cell for cell in notebook.cells if cell not in tagged.values()]
    parts = [
        shown(name, notebook.metadata.get("papermill", {}), took),
        at_scale(name, found),
        not_run(left),
        parameters({tag: cell.source for tag, cell in tagged.items()}),
    ]
    box = f'<div class="vp-rerun"><details><summary>Commands and times</summary>{"".join(parts)}'
    notebook.cells.append(
        nbformat.v4.new_markdown_cell(f"## Rerun this page\n\n{box}</details></div>")
    )


def shown(name: str, made: dict, took: Sequence[tuple[float, str]]) -> str:
    """The command for what the page shows, how long it took here, and what its runs took."""
    machines = Counter(machine for _, machine in took)
    most = "".join(machine for machine, _ in machines.most_common(1))
    where = f"on {html.escape(most)}" if len(machines) < 2 else f"mostly on {html.escape(most)}"
    here = f"; it took {made['duration']:.0f} seconds for this site" if "duration" in made else ""
    runs = (
        f" Its {counted(len(took), 'record')} took {length(sum(seconds for seconds, _ in took))} "
        f"to make, {where}. <code>visprompt verify 3</code> repeats three kept ones, drawn at "
        'random, and compares; <a href="../what-a-record-holds.html#run-again">to repeat a run of '
        "your choice</a>, remove its record first."
        if took
        else ""
    )
    return (
        f"<p>As shown here: <code>make notebook NAME={name}</code> reads the kept records and "
        f"runs only what has no record{here}.{runs}</p>"
    )


def length(seconds: float) -> str:
    """A time for readers: in seconds, in minutes, or in hours."""
    if seconds < 90:
        return counted(round(seconds), "second")
    return f"{seconds / 60:.0f} minutes" if seconds < 5400 else f"{seconds / 3600:.1f} hours"


def at_scale(name: str, found: dict) -> str:
    """The command for the papers' scale, with what it takes; "" where nothing is planned."""
    mine = [id for id, entry in found["artifacts"].items() if entry["notebook"] == name]
    with (MANIFESTS / "hours.csv").open(newline="") as file:
        plan = {row["artifact"]: row for row in csv.DictReader(file)}
    mine = [id for id in mine if id in plan and int(plan[id]["runs"])]
    if not mine:
        return ""
    runs, hours = (sum(float(plan[id][key]) for id in mine) for key in ("runs", "hours"))
    data = max(float(plan[id]["gigabytes"]) for id in mine)
    digits = 1 if hours < 100 else 0
    how = speed_of(None, usual_precision("paper")).how
    command = f'make sweep ARTIFACTS="{" ".join(mine)}" PROFILE=paper DEVICE=cuda DATA=FOLDER'
    return (
        f"<p>At the papers' scale: <code>{html.escape(command)}</code>. That is "
        f"{runs:,.0f} runs (one that several tables share counts for each), "
        f"{hours:,.{digits}f} GPU hours ({how}), and {data:,.0f} GB or more to fetch. One printed "
        f"number alone, on any GPU: "
        f'<a href="../downloads/{ONE_CELL}.py" download>{ONE_CELL}.py</a>.</p>'
    )


def not_run(left: Sequence[tuple[str, str]]) -> str:
    """What the page did not run, with the command of each; "" where there is nothing."""
    if not left:
        return ""
    boxes = "".join(
        f'<p><a href="#{id}">{html.escape(printed_name(papers.artifact(id)))}</a></p>'
        f"{box.replace(' This would run it:', '')}"
        for id, box in left
    )
    return f'<p id="not-run"><b>What was not run here</b></p>{boxes}'


def parameters(sources: dict[str, str]) -> str:
    """The page's parameters, and those that it was made with."""
    if not sources:
        return ""
    usual, made = (sources.get(tag, "") for tag in TAGS)
    given = ", ".join(line for line in made.splitlines() if not line.startswith("#"))
    return (
        "<p>You can set each of its parameters, as in "
        "<code>ARGS=\"-p seeds '[0]'\"</code>. These are the defaults; "
        f"with None the page chooses.</p><pre>{html.escape(usual)}</pre>"
        f"<p>This page was made with <code>{html.escape(given)}</code>.</p>"
    )
