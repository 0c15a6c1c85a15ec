"""The rules of `audit.yaml`, each with what it finds."""

import math
import re
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from visprompt import manifests, papers, paths
from visprompt.errors import BadInput, choose

from . import cells
from .cells import Amount, Cell, cells_of, columns, look_up, numbers
from .findings import (
    EXACT,
    Finding,
    judged,
    place,
    quoted_text,
    row_name,
    slug,
    table_name,
    where_is,
)
from .operations import evaluate
from .steps import step


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
    makers = {
        "means": mean_findings,
        "gains": gain_findings,
        "statements": statement,
        "settings": setting,
        "directions": direction,
        "steps": step,
    }
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
    names = [name for part in texts(rule["of"]) for name in columns(frame, part, rule["table"])]
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
        yield judged(
            base,
            cells.mean(values),
            "equal",
            explain=lambda v=values, c=cell, u=unit: why_mean(v, names, c, u),
        )


def mean_slacks() -> dict[tuple[str, int, str], float]:
    """How far each printed mean may be from that of its printed parts, for their rounding."""
    found = {}
    for rule in (rule for paper in papers.papers() for rule in rules(paper).get("means", ())):
        frame = cells_of(rule["table"])
        names = [name for part in texts(rule["of"]) for name in columns(frame, part, rule["table"])]
        for row, parts in enumerate(frame[names].to_dict("records")):
            amounts = [Cell(rule["table"], row, name, text).amount for name, text in parts.items()]
            if None not in amounts:
                found[rule["table"], row, rule["column"]] = cells.mean(amounts).slack
    return found


def texts(value) -> list[str]:
    """One text or several as a list of texts."""
    return [str(v) for v in (value if isinstance(value, list) else [value])]


def why_mean(values: list[Amount], names: list[str], cell: Cell, unit: float) -> str:
    """The simplest reading under which a printed mean that is off would be right."""
    shown, right = cell.amount.value, cells.mean(values).value
    for i, name in enumerate(names):
        rest = [value.value for j, value in enumerate(values) if j != i]
        if rest and abs(sum(rest) / len(rest) - shown) <= unit / 2 + EXACT:
            return f"It is the mean without {name}."
    change = (shown - right) * len(names)
    return (
        f"Off by {shown - right:+.2g}: one of the {len(names)} cells would have to "
        f"differ by {change:+.2g}."
    )


def gain_findings(paper: str, rule: dict) -> Iterable[Finding]:
    """Differences that stand inside cells, "85.1 (+3.5)"."""
    frame = cells_of(rule["table"])
    for row in range(len(frame)):
        for column in [
            c for part in texts(rule["columns"]) for c in columns(frame, part, rule["table"])
        ]:
            found = numbers(frame.iloc[row][column])
            if len(found) < 2:
                continue
            same = (
                frame[rule["within"]] == frame.iloc[row][rule["within"]]
                if "within" in rule
                else frame.index >= 0
            )
            base_rows = [
                r
                for r in frame.index[same]
                if rule["over"] in [*frame.iloc[r, :3], row_name(frame, r)]
            ]
            if len(base_rows) != 1:
                raise BadInput(
                    f"{rule['table']}: {rule['over']!r} names {len(base_rows)} rows; name "
                    f"the row's first cell."
                )
            cell = Cell(rule["table"], row, column, frame.iloc[row][column])
            base = numbers(frame.iloc[base_rows[0]][column])
            if not base:
                raise BadInput(
                    f"{rule['table']}: {rule['over']!r} prints no number in {column}; "
                    f"leave that column out."
                )
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
    """A number of the text, or a cell, that follows from cells; `says` is the sentence that
    compares a cell."""
    id = f"{paper}.text.{rule['id']}"
    source = f"{paper}.prose | {rule['prose']} | value" if "prose" in rule else rule["cell"]
    cell = single(id, source)
    artifact = rule.get("artifact", cell.table)
    choose(f"artifact in {id}:", artifact, papers.artifacts().index)
    sentence = (
        cell
        if "prose" in rule
        else single(id, f"{paper}.prose | {rule['says']} | value")
        if "says" in rule
        else None
    )
    equal, value = rule.get("sense", "equal") == "equal", rule.get("value")
    both = [cell, *look_up(value)] if isinstance(value, str) else [cell]
    finding = Finding(
        id,
        paper,
        artifact,
        cells_of(sentence.table).iloc[sentence.row]["where"]
        if sentence
        else where_is(cell).partition(", ")[2],
        rule.get("kind", "statement"),
        rule["what"],
        cell.text if sentence in (cell, None) else sentence.text,
        "",
        "inconclusive",
        claim=rule.get("claim", ""),
        cells=tuple(place(c) for c in both if not c.table.endswith(".prose")),
        quote=quoted_text(sentence) if sentence else "",
        marks=None if equal else (),  # of a comparison the sentence is wrong, no cell
    )
    if rule.get("claim"):
        papers.claim(rule["claim"])
    found = evaluate(rule)
    if found is None:
        return replace(finding, reading="A cell that it needs is not printed.")
    several = [
        amount.times(rule.get("scale", 1))
        for amount in (found if isinstance(found, list) else [found])
    ]
    return judged(finding, several, rule.get("sense", "equal"), numbers(cell.text))


def single(id: str, reference: str) -> Cell:
    """The one cell of a reference."""
    cell, *more = look_up(reference)
    if more:
        raise BadInput(f"{id}: {reference!r} leads to {1 + len(more)} cells; name one column.")
    return cell


def said(cell: Cell) -> float | str:
    """What a place says: a number where it is nothing but one."""
    return float(cell.text.replace(",", "")) if re.fullmatch(r"[\d,.]+", cell.text) else cell.text


def setting(paper: str, rule: dict) -> Finding:
    """Places that should say the same; a place that says what a witness says is not marked."""
    found, witnesses = (
        [single(rule["id"], r) for r in rule.get(key, ())] for key in ("places", "witnesses")
    )
    shown = [f"{cell.text} ({where_is(cell)})" for cell in found]
    right = {said(cell) for cell in witnesses}
    choose(f"artifact in {rule['id']}:", rule["artifact"], papers.artifacts().index)
    tabled = [cell for cell in found if not cell.table.endswith("prose")]
    finding = Finding(
        f"{paper}.setting.{rule['id']}",
        paper,
        rule["artifact"],
        where_is(found[0]),
        rule.get("kind", "setting"),
        rule["what"],
        shown[0],
        "; ".join(shown[1:]),
        "agrees" if len({said(cell) for cell in found}) == 1 else "disagrees",
        cells=tuple(place(cell) for cell in tabled),
        quote="; ".join(dict.fromkeys(quoted_text(cell) for cell in found if cell not in tabled)),
        marks=tuple(place(cell) for cell in tabled if said(cell) not in right) if right else None,
    )
    doubts = {cells_of(cell.table).iloc[cell.row]["doubt"] for cell in tabled} - {""}
    if rule.get("damaged") and not doubts:
        raise BadInput(f"{rule['id']}: no row of its places has a doubt; take 'damaged' out.")
    if rule.get("damaged") and finding.verdict == "disagrees":
        return replace(
            finding,
            verdict="inconclusive",
            reading=f"The text is damaged here: {'; '.join(doubts)}.",
        )
    return finding


SIGNS = {"rises": 1, "falls": -1}


def direction(paper: str, rule: dict) -> Finding:
    """A remark on which way a quantity goes, against the steps that it follows from: two falls are
    a rise."""
    id = f"{paper}.direction.{rule['id']}"
    remark, *steps = [
        single(id, f"{paper}.prose | {name} | value") for name in (rule["says"], *rule["steps"])
    ]
    for cell in (remark, *steps):
        choose(f"direction in {id}:", cell.text, SIGNS)
    choose(f"artifact in {id}:", rule["artifact"], papers.artifacts().index)
    follows = math.prod(SIGNS[cell.text] for cell in steps)
    word = next(word for word, sign in SIGNS.items() if sign == follows)
    return Finding(
        id,
        paper,
        rule["artifact"],
        where_is(remark),
        "direction",
        rule["what"],
        remark.text,
        word,
        "agrees" if word == remark.text else "disagrees",
        quote="; ".join(quoted_text(cell) for cell in (remark, *steps)),
    )
