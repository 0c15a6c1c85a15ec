"""One cell of a paper's table at its own scale: fetched, run, compared with print, and packed."""

import re
import tarfile
from dataclasses import replace
from pathlib import Path

from visprompt import papers
from visprompt.data import fetching
from visprompt.errors import BadInput, choose
from visprompt.records import Record, store

from . import plan
from .lab import Lab, LabSettings


def chosen(table: str, row: str, task: str) -> plan.Cell:
    """The planned cell of a table: the variant that `row` names, on a task.

    Raises:
        BadInput: the table has no such row or task; the message names those that there are.
    """
    found = plan.cells_of(table)
    if not found:
        raise BadInput(
            f"nothing is trained for {table}; give a table of runs, such as ivpt.table-1."
        )
    choose(f"row of {table}", row, dict.fromkeys(cell.variant for cell in found))
    mine = {cell.run.task: cell for cell in found if cell.variant == row}
    return mine[choose(f"task of {table}", task, mine)]


def letters(name: str) -> str:
    return re.sub("[^a-z0-9]", "", name.lower())


def printed(table: str, row: str, column: str) -> float | None:
    """The printed number of a row and a column; None where the text has no such cell."""
    cells = papers.published(table)
    columns = {letters(name): name for name in cells.columns}
    rows = cells[cells.method.map(letters) == letters(row)]
    if letters(column) not in columns or not len(rows):
        return None
    try:
        return float(rows.iloc[0][columns[letters(column)]])
    except ValueError:
        return None


def fetch(cell: plan.Cell, folder: Path) -> None:
    """Fetch the data set of a cell; what is there is kept.

    Raises:
        BadInput: it is to be got by hand; the message says how.
    """
    found = fetching.fetch(cell.run.task, data_dir=folder)
    lacking = [finding.file for finding in found if finding.state == "missing"]
    if lacking:
        steps = " ".join(fetching.catalogue.find(cell.run.task).steps)
        raise BadInput(f"{', '.join(lacking)} is to be got by hand: {steps}")


def run(
    cell: plan.Cell,
    folder: Path,
    device: str,
    *,
    seed: int = 0,
    weights: str = "pretrained",
    backbone: str = "",
    **changes,
) -> Record:
    """The record of one training of a cell, at the rate that its recipe names, in bf16 on a GPU.

    Args:
        weights: a file, where the checkpoint is not to be fetched.
        backbone: another network, for a trial.
        changes: fields of the recipe.
    """
    settings = LabSettings(cell.recipe, weights, str(folder), device, changes, "paper")
    network = backbone or cell.run.backbone
    return Lab(settings).do(replace(cell.run, seed=seed, backbone=network))


def pack(record: Record, file: Path) -> Path:
    """A record and its list of code as one file; unpacked it is what `visprompt merge` takes."""
    here = store.stores()[0]
    file.parent.mkdir(parents=True, exist_ok=True)
    names = [
        Path("code", f"{record.code}.json"),
        Path(store.place(record.kind, record.settings, record.key)),
    ]
    with tarfile.open(file, "w:gz") as archive:
        for name in names:
            archive.add(here / name, name)
    return file
