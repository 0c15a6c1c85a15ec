"""One printed number held against what other printed numbers give."""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace

import pandas as pd

from visprompt import papers
from visprompt.errors import BadInput
from visprompt.papers.rounding import EXACT, stands_for

from .cells import Amount, Cell, cells_of, numbers

# numbers against numbers
ARITHMETIC = ("mean", "gain", "statement", "quoted", "parameters", "operations")
# Sentences against numbers and against each other; `data_manifests/papers/README.md` says what each
# of them is.
WORDING = (
    "setting",
    "direction",
    "step",
    "definition",
    "protocol",
    "magnitude",
    "elsewhere",
    "bound",
    "enumeration",
    "symbol",
    "reference",
)
KINDS = ARITHMETIC + WORDING
# "far fewer", "<<" and the like grant this
FACTORS = {"far below": 2, "much below": 10, "far above": 2, "much above": 10}
SENSES = ("equal", "at least", "above", "at most", "below", "about", "between", *FACTORS)
ABOUT = 0.1  # "about" and "approximately" grant a tenth


@dataclass(frozen=True)
class Finding:
    """One printed number held against what other printed numbers give."""

    id: str
    paper: str
    artifact: str  # the section it belongs to
    where: str  # where the number is printed
    kind: str  # one of KINDS
    what: str  # what was recomputed
    printed: str
    computed: str
    verdict: str  # one of `words.VERDICTS`
    reading: str = ""  # the likely explanation
    claim: str = ""  # the claim that this answers
    estimate: float | None = None  # the computed value as a number
    cells: tuple[
        tuple[str, int, str], ...
    ] = ()  # (artifact, row, column) of the numbers that it is about
    quote: str = ""  # the sentence, with its place in the paper
    # of `cells`, those to mark; two are a pair that nothing decides
    marks: tuple[tuple[str, int, str], ...] | None = None


def slug(text: str) -> str:
    """A text as a part of an id."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


def row_name(frame: pd.DataFrame, row: int) -> str:
    """The first cells of a row, as many as tell the rows apart; a tick is the name of its
    column."""
    rows = frame.to_numpy().tolist()
    count = next(
        (n for n in range(1, len(frame.columns)) if len({tuple(r[:n]) for r in rows}) == len(rows)),
        1,
    )
    first = zip(frame.columns, rows[row][:count], strict=False)
    return (
        " ".join(name if cell in ("✓", "yes") else cell for name, cell in first if cell) or "none"
    )


def table_name(artifact: str) -> str:
    """ "Table A3" of "ap.table-a3"."""
    row = papers.artifact(artifact)
    return f"{row['kind'].capitalize()} {row['number']}"


def where_is(cell: Cell) -> str:
    """Where a cell stands, in a reader's words."""
    if cell.table.endswith(".prose"):
        paper, row = cell.table.split(".")[0], cells_of(cell.table).iloc[cell.row]
        return f"{papers.papers()[paper]['short']}, {row['where']}"
    short = papers.papers()[cell.table.split(".")[0]]["short"]
    return (
        f"{short}, {table_name(cell.table)}, "
        f"{row_name(cells_of(cell.table), cell.row)}, {cell.column}"
    )


def place(cell: Cell) -> tuple[str, int, str]:
    """Which cell it is, for a page that marks it."""
    return cell.table, cell.row, cell.column


def quoted_text(cell: Cell) -> str:
    """A sentence of prose.csv with its place."""
    row = cells_of(cell.table).iloc[cell.row]
    return f'"{row["quote"]}" ({row["where"]})'


def judged(
    finding: Finding,
    found: Amount | list[Amount],
    sense: str,
    shown=None,
    explain: Callable = lambda: "",
) -> Finding:
    """A finding with its verdict: what was recomputed against what is printed.

    Printed digits stand for what rounds to them, and so do the digits of the cells that it follows
    from.
    """
    found, shown = found if isinstance(found, list) else [found], shown or numbers(finding.printed)
    if not shown:
        raise BadInput(f"{finding.id}: {finding.printed!r} prints no number.")
    digits = max(0, len(f"{shown[0][1]:.10f}".rstrip("0").partition(".")[2])) + 1
    text = " to ".join(
        f"{amount.value:.{digits}f}".rstrip("0").rstrip(".") or "0" for amount in found
    )
    low, high = shown[0][0].value, shown[-1 if sense == "between" else 0][0].value
    least, most = min(a.value for a in found), max(a.value for a in found)
    slack, half = max(a.slack for a in found), shown[0][1] / 2
    right = {
        "equal": all(stands_for(low, 2 * half, a.value, a.slack) for a in found),
        "about": all(abs(a.value - low) <= ABOUT * abs(low) + EXACT for a in found),
        "between": least >= low - half - slack - EXACT
        and (most <= high or bool(stands_for(high, 2 * half, most, slack))),
        "at least": least >= low - EXACT,
        "above": least > low + EXACT,
        "at most": most <= high + EXACT,
        "below": most < high - EXACT,
        **{
            f"{much} below": most * FACTORS[f"{much} below"] <= high + EXACT
            for much in ("far", "much")
        },
        **{
            f"{much} above": least >= low * FACTORS[f"{much} above"] - EXACT
            for much in ("far", "much")
        },
    }[sense]
    reading = ""
    if sense == "equal" and right and stands_for(low, 2 * half, found[0].value) != "rounded":
        way = stands_for(low, 2 * half, found[0].value, found[0].slack)
        reading = (
            "Cut off, not rounded."
            if way == "cut off"
            else "Within what the rounding of the cells allows."
        )
    return replace(
        finding,
        computed=text,
        verdict="agrees" if right else "disagrees",
        reading=reading if right else explain(),
        estimate=found[0].value,
    )
