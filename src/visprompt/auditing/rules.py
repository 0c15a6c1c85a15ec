"""The rules of `audit.yaml`, each with what it finds."""

import re
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from .. import manifests, papers, paths
from ..errors import BadInput, choose
from . import cells
from .cells import Amount, Cell, cells_of, columns, look_up, numbers
from .findings import EXACT, Finding, judged, place, row_name, slug, table_name, where_is
from .operations import evaluate


def file_of(paper: str) -> Path:
    """Where the rules of a paper are."""
    return paths.MANIFESTS / "papers" / paper / "audit.yaml"


def rules(paper: str) -> dict:
    """What `audit.yaml` of a paper holds; empty where there is none.

    Raises:
        BadInput: the file is damaged.
    """
    return manifests.load_yaml(file_of(paper)) if file_of(paper).exists() else {}


def arithmetic(paper: str) -> Iterable[Finding]:
    """What the rules of a paper find.

    Raises:
        BadInput: a rule leads nowhere; the message begins with its file and line.
    """
    makers = {"means": mean_findings, "gains": gain_findings, "statements": statement, "settings": setting}
    given = rules(paper)
    for part, make in makers.items():
        for number, rule in enumerate(given.get(part, ())):
            with manifests.located(file_of(paper), part, number):
                found = make(paper, rule)
                found = [found] if isinstance(found, Finding) else list(found)
            yield from found


def mean_findings(paper: str, rule: dict) -> Iterable[Finding]:
    """A column that is the mean of others, in every row."""
    frame = cells_of(rule["table"])
    wanted = rule["of"] if isinstance(rule["of"], list) else [rule["of"]]
    names = [name for part in wanted for name in columns(frame, part, rule["table"])]
    for row in range(len(frame)):
        kept = all(frame.iloc[row][c] in texts(v) for c, v in rule.get("where", {}).items())
        cell = Cell(rule["table"], row, rule["column"], frame.iloc[row][rule["column"]])
        if not kept or cell.amount is None:
            continue
        parts = [Cell(rule["table"], row, name, frame.iloc[row][name]) for name in names]
        what = f"mean of {len(names)} columns, {names[0]} to {names[-1]}"
        id = f"{rule['table']}.{slug(rule['column'])}.{slug(row_name(frame, row))}"
        base = Finding(
            id,
            paper,
            rule["table"],
            f"{table_name(rule['table'])}, {row_name(frame, row)}, {rule['column']}",
            "mean",
            what,
            cell.text,
            "",
            "inconclusive",
            cells=(place(cell),),
        )
        if any(part.amount is None for part in parts):
            yield replace(base, reading="Its parts are not printed.")
            continue
        values, unit = [part.amount for part in parts], numbers(cell.text)[0][1]
        yield judged(base, cells.mean(values), "equal", explain=lambda v=values, c=cell, u=unit: why_mean(v, names, c, u))


def texts(value) -> list[str]:
    """One text or several as a list of texts."""
    return [str(v) for v in (value if isinstance(value, list) else [value])]


def why_mean(values: list[Amount], names: list[str], cell: Cell, unit: float) -> str:
    """The simplest reading under which a printed mean that is off would be right."""
    shown, right = cell.amount.value, cells.mean(values).value
    if 0 < right - shown < unit:
        return "The mean cut off, not rounded."
    for i, name in enumerate(names):
        rest = [value.value for j, value in enumerate(values) if j != i]
        if rest and abs(sum(rest) / len(rest) - shown) <= unit / 2 + EXACT:
            return f"It is the mean without {name}."
    change = (shown - right) * len(names)
    return f"Off by {shown - right:+.2g}: one of the {len(names)} cells would have to differ by {change:+.2g}."


def gain_findings(paper: str, rule: dict) -> Iterable[Finding]:
    """Differences that stand inside cells, "85.1 (+3.5)"."""
    frame = cells_of(rule["table"])
    for row in range(len(frame)):
        for column in [c for part in texts(rule["columns"]) for c in columns(frame, part, rule["table"])]:
            found = numbers(frame.iloc[row][column])
            if len(found) < 2:
                continue
            same = frame[rule["within"]] == frame.iloc[row][rule["within"]] if "within" in rule else frame.index >= 0
            base_rows = [r for r in frame.index[same] if rule["over"] in [*frame.iloc[r, :3], row_name(frame, r)]]
            if len(base_rows) != 1:
                raise BadInput(f"{rule['table']}: {rule['over']!r} names {len(base_rows)} rows; name the row's first cell.")
            cell = Cell(rule["table"], row, column, frame.iloc[row][column])
            base = numbers(frame.iloc[base_rows[0]][column])
            if not base:
                raise BadInput(f"{rule['table']}: {rule['over']!r} prints no number in {column}; leave that column out.")
            id = f"{rule['table']}.gain.{slug(row_name(frame, row))}.{slug(column)}"
            where = f"{table_name(rule['table'])}, {row_name(frame, row)}, {column}"
            finding = Finding(
                id,
                paper,
                rule["table"],
                where,
                "gain",
                f"difference to {rule['over']}",
                f"{found[1][0].value:g}",
                "",
                "inconclusive",
                cells=(place(cell),),
            )
            yield judged(finding, found[0][0] - base[0][0], "equal", found[1:2])


def statement(paper: str, rule: dict) -> Finding:
    """A number of the text, or a cell, that follows from cells."""
    id = f"{paper}.text.{rule['id']}"
    source = f"{paper}.prose | {rule['prose']} | value" if "prose" in rule else rule["cell"]
    (cell, *more) = look_up(source)
    if more:
        raise BadInput(f"{id}: {source!r} leads to {1 + len(more)} cells; name one column.")
    artifact = rule.get("artifact", cell.table)
    choose(f"artifact in {id}:", artifact, papers.artifacts().index)
    where = (
        f"{table_name(cell.table)}, {row_name(cells_of(cell.table), cell.row)}, {cell.column}"
        if "cell" in rule
        else (cells_of(f"{paper}.prose").iloc[cell.row]["where"])
    )
    finding = Finding(
        id,
        paper,
        artifact,
        where,
        "statement",
        rule["what"],
        cell.text,
        "",
        "inconclusive",
        claim=rule.get("claim", ""),
        cells=(place(cell),) if "cell" in rule else (),
    )
    if rule.get("claim"):
        papers.claim(rule["claim"])
    found = evaluate(rule)
    if found is None:
        return replace(finding, reading="A cell that it needs is not printed.")
    several = [amount.times(rule.get("scale", 1)) for amount in (found if isinstance(found, list) else [found])]
    return judged(finding, several, rule.get("sense", "equal"))


def setting(paper: str, rule: dict) -> Finding:
    """Places that should say the same."""
    found = [look_up(reference)[0] for reference in rule["places"]]
    said = [f"{cell.text} ({where_is(cell)})" for cell in found]
    values = {float(c.text.replace(",", "")) if re.fullmatch(r"[\d,.]+", c.text) else c.text for c in found}
    choose(f"artifact in {rule['id']}:", rule["artifact"], papers.artifacts().index)
    return Finding(
        f"{paper}.setting.{rule['id']}",
        paper,
        rule["artifact"],
        where_is(found[0]),
        "setting",
        rule["what"],
        said[0],
        "; ".join(said[1:]),
        "agrees" if len(values) == 1 else "disagrees",
        cells=tuple(place(cell) for cell in found if not cell.table.endswith("prose")),
    )
