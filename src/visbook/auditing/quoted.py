"""Numbers that several tables print for the same thing, held side by side.

`data_manifests/papers/names.yaml` says which thing a cell is: measure, method, backbone,
pre-training, data.
"""

from collections import defaultdict
from collections.abc import Iterable
from itertools import product

import pandas as pd

from visprompt import manifests, paths
from visprompt.errors import BadInput

from .cells import Cell, cells_of, columns, numbers
from .findings import EXACT, Finding, place, slug, where_is
from .rules import mean_slacks

DIMENSIONS = ("measure", "backbone", "pretraining", "method", "data", "setting")


def named_cells() -> pd.DataFrame:
    """Every cell of the tables of `names.yaml`: DIMENSIONS, "cell", "paper" and "artifact".

    Raises:
        BadInput: an unknown dimension, column or artifact.
    """
    content = manifests.load_yaml(paths.MANIFESTS / "papers" / "names.yaml")
    aliases = {
        dimension: {alias: name for name, others in names.items() for alias in (name, *others)}
        for dimension, names in content["names"].items()
    }
    rows = []
    for table, parts in content["tables"].items():
        frame = cells_of(table)
        for part, (number, row) in product(
            parts if isinstance(parts, list) else [parts], enumerate(frame.to_dict("records"))
        ):
            if any(row[column] != value for column, value in part.get("where", {}).items()):
                continue
            fixed = {
                **part.get("fixed", {}),
                **{d: row[c] for d, c in part.get("rows", {}).items()},
            }
            fixed = {d: part.get("rename", {}).get(value, value) for d, value in fixed.items()}
            if not all(fixed.values()):
                continue  # a row without a name
            ((dimension, wanted),) = part["columns"].items()
            wanted = (
                wanted
                if isinstance(wanted, dict)
                else {c: c for w in wanted for c in columns(frame, w, table)}
            )
            for column, name in wanted.items():
                key = {**fixed, dimension: name}
                key = {d: aliases.get(d, {}).get(v, v) for d, v in key.items()}
                cell = Cell(table, number, column, row[column])
                rows.append(
                    {**dict.fromkeys(DIMENSIONS, ""), **key, "cell": cell, "artifact": table}
                )
    return pd.DataFrame(rows)


def same(a: Cell, b: Cell, slack: float = 0.0) -> bool:
    """Whether two cells print the same number; a coarser one may be the finer one rounded, "800 /
    1000" is either.

    `slack` is what the rounding of their parts grants a coarser one.
    """
    pairs = product(*[[numbers(part)[0] for part in cell.text.split("/")] for cell in (a, b)])
    for (first, unit), (second, other) in pairs:
        allowed = 0 if unit == other else max(unit, other) / 2 + slack
        if abs(first.value - second.value) <= allowed + EXACT:
            return True
    return False


def quotations() -> Iterable[Finding]:
    """A finding for each cell that prints again what `names.yaml` says another table prints.

    Cells are held against the one that most tables repeat, the first of such. Where only one side
    is repeated the other is marked; where both are, the two are a pair.
    """
    groups = defaultdict(list)
    for row in named_cells().itertuples():
        if row.cell.amount is not None:
            groups[tuple(getattr(row, d) for d in DIMENSIONS)].append(row.cell)
    slacks = mean_slacks()
    for key, found in groups.items():
        tables = [cell.table for cell in found]
        if len(set(tables)) < len(tables):
            raise BadInput(
                f"names.yaml names two cells of {max(tables, key=tables.count)} alike: "
                f"{', '.join(key)}."
            )
        slack = max(slacks.get(place(cell), 0.0) for cell in found)
        repeated = {
            place(cell): sum(same(cell, other, slack) for other in found) - 1 for cell in found
        }
        first = max(found, key=lambda cell: repeated[place(cell)])
        words = ", ".join(filter(None, key))
        for cell in found:
            if cell is first:
                continue
            pair = (place(cell), place(first))
            marks = (
                tuple(p for p in pair if not repeated[p])
                if any(repeated[p] for p in pair)
                else None
            )
            yield Finding(
                f"{cell.table}.quoted.{slug(words)}",
                cell.table.split(".")[0],
                cell.table,
                where_is(cell),
                "quoted",
                words,
                cell.text,
                f"{first.text} ({where_is(first)})",
                "agrees" if same(first, cell, slack) else "disagrees",
                cells=pair,
                marks=marks or pair if marks is not None else None,
            )
