"""Printed cells as numbers: where a reference leads, how exact a cell is, and arithmetic that keeps
track of it."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from visprompt import manifests, papers, paths
from visprompt.errors import BadInput, choose
from visprompt.records import remember

NUMBER = re.compile(r"[-+−]?\d+(?:,\d{3})*(?:\.\d+)?")
CERTAIN = 4  # standard deviations of the rounding errors that are granted


@dataclass(frozen=True)
class Amount:
    """A number known up to the rounding of what it was computed from.

    Printed digits stand for an interval of one unit of the last digit. Errors of several cells are
    independent, so a mean of many is surer than its worst case; `slack` is the smaller of the two
    bounds.
    """

    value: float
    worst: float = 0.0  # largest possible error
    variance: float = 0.0  # of the error, each cell's uniform over its interval

    @property
    def slack(self) -> float:
        """How far the unrounded number may be from `value`."""
        return min(self.worst, CERTAIN * math.sqrt(self.variance))

    def __add__(self, other: "Amount") -> "Amount":
        return Amount(
            self.value + other.value, self.worst + other.worst, self.variance + other.variance
        )

    def times(self, factor: float) -> "Amount":
        """The amount times a number without error."""
        return Amount(self.value * factor, self.worst * abs(factor), self.variance * factor**2)

    def __sub__(self, other: "Amount") -> "Amount":
        return self + other.times(-1)

    def __mul__(self, other: "Amount") -> "Amount":
        return Amount(
            self.value * other.value,
            self.worst * abs(other.value) + other.worst * abs(self.value),
            self.variance * other.value**2 + other.variance * self.value**2,
        )

    def __truediv__(self, other: "Amount") -> "Amount":
        return self * Amount(
            1 / other.value, other.worst / other.value**2, other.variance / other.value**4
        )


@dataclass(frozen=True)
class Cell:
    """One printed cell."""

    table: str  # artifact, or "<paper>.prose"
    row: int
    column: str
    text: str

    @property
    def amount(self) -> Amount | None:
        """Its first number; None where it prints none."""
        found = numbers(self.text)
        return found[0][0] if found else None


def numbers(text: str) -> list[tuple[Amount, float]]:
    """The numbers of a text, each with the unit of its last digit: "85.1 (+3.5)" -> 85.1 and 3.5,
    both 0.1.

    A sign counts at the beginning, behind a bracket or behind a space, and "↓" is a minus; "1,000"
    is a thousand.
    """
    found = []
    for match in NUMBER.finditer(text):
        digits = match[0].replace(",", "").replace("−", "-")
        if digits[0] in "+-" and match.start() and text[match.start() - 1] not in "( ":
            digits = digits[1:]
        if text[: match.start()].rstrip().endswith("↓"):
            digits = "-" + digits.lstrip("+-")
        unit = 10.0 ** -len(digits.partition(".")[2])
        found.append((Amount(float(digits), unit / 2, unit**2 / 12), unit))
    return found


@remember
def table(name: str, root: str = "") -> pd.DataFrame:
    """The cells of an artifact, or of "<paper>.prose", as printed.

    Raises:
        BadInput: no such table, or its cells are lost.
    """
    paper, _, kind = name.partition(".")
    if kind == "prose":
        choose("paper", paper, papers.papers())
        return manifests.read_table(paths.MANIFESTS / "papers" / paper / "prose.csv")
    return papers.published(name)


def cells_of(name: str) -> pd.DataFrame:
    """`table`, read once for each place that manifests may lie in."""
    return table(name, str(paths.MANIFESTS))


def columns(frame: pd.DataFrame, text: str, place: str) -> list[str]:
    """The columns of "A", of "A, B" or of "first .. last", in the order of the table.

    Raises:
        BadInput: the table has no such column; `place` begins the message.
    """
    if text in frame.columns:
        return [text]
    found = []
    for part in re.split(r",\s*", text):
        ends = [
            choose(f"column in {place}:", end.strip(), frame.columns) for end in part.split(" .. ")
        ]
        first, last = frame.columns.get_loc(ends[0]), frame.columns.get_loc(ends[-1])
        found += list(frame.columns[first : last + 1])
    return found


def look_up(reference: str) -> list[Cell]:
    """The cells of "artifact | key | key ... | columns": keys are the row's first columns, or
    "column=value".

    Raises:
        BadInput: the reference leads nowhere, or to several rows.
    """
    name, *keys, wanted = [part.strip() for part in str(reference).split(" | ")]
    frame = cells_of(name)
    rows, place = frame, f"{reference!r}"
    if len(keys) > len(frame.columns):
        raise BadInput(
            f"{place} has {len(keys)} keys, but {name} has {len(frame.columns)} columns; "
            f"name fewer."
        )
    for position, key in enumerate(keys):
        column, value = frame.columns[position], key
        if "=" in key and key.split("=")[0] in frame.columns:
            column, value = key.split("=", 1)
        choose(f"{column} in {place}:", value, dict.fromkeys(rows[column]))
        rows = rows[rows[column] == value]
    if len(rows) != 1:
        raise BadInput(
            f"{place} leads to {len(rows)} rows; name more of the first columns, or column=value."
        )
    return [
        Cell(name, int(rows.index[0]), c, rows.iloc[0][c]) for c in columns(frame, wanted, place)
    ]


def mean(amounts: Sequence[Amount]) -> Amount:
    """The mean of at least one amount."""
    return total(amounts).times(1 / len(amounts))


def total(amounts: Sequence[Amount]) -> Amount:
    """The sum."""
    return sum(amounts, Amount(0.0))
