"""What the page *Help wanted* lists: the artifacts that wait for a card, and what others sent."""

import html
from pathlib import Path

from visprompt import papers, records
from visprompt.records import store

from ..sharing import others
from ..studies.adopting import waiting
from .tables import code, link, printed_name, table


def wanted(results: dict, root: Path) -> str:
    """Every artifact that waits, by claims settled per hour."""
    known, rows = papers.artifacts(), []
    for one in waiting():
        row = known.loc[one.artifact]
        short = papers.papers()[row["paper"]]["short"]
        name = link(one.artifact, f"{short}, {printed_name(row)}", results)
        hours = f"{one.hours:,.2f}" if one.runs else "no training"
        data = f"{one.gigabytes:,.1f} GB" if one.gigabytes else "–"
        lines = "<br>".join(map(code, one.command.splitlines()))
        rows.append([name, str(one.claims), hours, f"{one.runs:,}", data, lines])
    head = ["Artifact", "Claims", "Hours", "Runs", "To fetch", "Command"]
    return table(head, rows, filterable=True, widths=(18, 8, 9, 8, 11, 46))


def sent(results: dict, root: Path) -> str:
    """The accepted records of others beside ours, under their name and machine; several values of
    one run are a spread."""
    found = others.accepted()
    if not found:
        return "Nobody has sent records yet, so every verdict of this book rests on our work alone."
    rows = []
    for row in others.beside(records.all_records("tune", store.stores()[1:]), found):
        spread = "–" if row["spread"] is None else f"{row['spread']:.2f} points"
        values = "<br>".join(map(value, row["values"]))
        words = (html.escape(str(row[name])) for name in ("method", "task", "backbone", "seed"))
        rows.append([*words, values, spread])
    head = ["Method", "Task", "Network", "Seed", "Test accuracy, who and where", "Spread"]
    own = others.own_names()
    checked = "\n".join(
        f"- {html.escape(one.sender['name'])}, {one.date}"
        f"{' (this project itself, so no second party)' if one.sender['name'] in own else ''}: "
        f"{html.escape('; '.join(one.checked))}"
        for one in found
    )
    return f"{table(head, rows, filterable=True)}\n\nWhat was checked:\n\n{checked}"


def value(of_run: dict) -> str:
    """An accuracy with who had it, where and in which precision, as HTML."""
    who = of_run["sender"] or "us"
    told = f"{of_run['test']:.2f}: {who}, {of_run['precision']}, {of_run['machine']}"
    return html.escape(told + (" (equal to ours to the last digit)" if of_run["equal"] else ""))


MAKERS = {"help-wanted": wanted, "records-of-others": sent}
