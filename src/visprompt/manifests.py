"""Read and check `data_manifests/`: the papers, their artifacts, printed cells and claims.

Small text files written by hand, explained in `data_manifests/papers/README.md`; `schemas` says what each may hold.
"""

import copy
import csv
import functools
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from visprompt.errors import BadInput, choose
from visprompt.validation import Source, validated

# The repository root. An installed package lies elsewhere than the manifests, hence the variable.
ROOT = Path(os.environ.get("VISPROMPT_ROOT") or Path(__file__).parents[2])

ARTIFACT_COLUMNS = ("paper", "kind", "number", "title", "shows", "backbone", "datasets", "scale_needed")
DIRECTIONS = ("greater", "less", "equal")
EVIDENCE = ("derived", "measured", "trend", "replicated")


@dataclass(frozen=True)
class Claim:
    """One checkable statement of a paper, and what would settle it.

    `direction` says how an estimate with an interval is held against it:

    * "greater": the estimate is a difference or a slope; the claim agrees when the whole interval
      is above `margin`, disagrees when it is wholly below. "less" is the mirror image.
    * "equal": the estimate is a number; the claim agrees when the interval lies inside
      `published` +- `tolerance`, disagrees when the two are disjoint.
    * Anything else is inconclusive.
    """

    id: str  # "<artifact id>.<short slug>"
    artifact: str  # id in artifacts.csv
    where: str  # where the paper prints it
    metric: str  # what the estimate is, with its unit
    direction: str  # one of DIRECTIONS
    why: str  # the reason for the margin or the tolerance
    settles: tuple[str, ...]  # the kinds of evidence that could settle it
    printed: str = ""  # the value as printed, or the statement in short
    published: float | None = None  # the same as a number; "equal" needs it
    margin: float | None = None  # "greater" and "less"
    tolerance: float | None = None  # "equal"


def load_yaml(path: Path) -> dict | list:
    """Return what the YAML file holds, checked once against its schema (`schemas.SCHEMAS`, by the file's name).

    Raises:
        BadInput: the file is missing or damaged; the message names the line.
    """
    return copy.deepcopy(_checked(Path(path), stamp(path)).content)  # what a caller changes is its own


def stamp(path: Path) -> tuple | None:
    """What changes with a file: time, size and the file itself; None where nothing can be read."""
    try:
        status = os.stat(path)
    except OSError:
        return None  # reading it says what is wrong
    return status.st_mtime_ns, status.st_size, status.st_ino


@functools.lru_cache(maxsize=64)
def _checked(path: Path, stamp: tuple | None) -> Source:
    """A file parsed and checked once as long as it does not change: a chapter reads the same few thousands of times."""
    return validated(path)


@contextmanager
def located(path: Path, *steps: str | int) -> Iterator[None]:
    """What is refused within was asked for by this place of a YAML file; the message begins with file and line."""
    try:
        yield
    except BadInput as error:
        raise BadInput(f"{_checked(path, stamp(path)).place(steps)}{error}") from error


def read_table(path: Path) -> pd.DataFrame:
    """Return a CSV file with every cell as the string in the file, empty cells as "".

    Raises BadInput when it is missing, is not CSV, or has rows of unlike length or a column twice.
    """
    try:
        with open(path, encoding="utf-8", newline="") as file:
            rows = list(csv.reader(file, strict=True))
    except FileNotFoundError:
        raise BadInput(f"{path} does not exist; restore it from the repository.") from None
    except OSError as error:
        raise BadInput(f"{path} cannot be read ({error.strerror}); restore it from the repository.") from None
    except (csv.Error, UnicodeDecodeError) as error:
        raise BadInput(f"{path} is not a readable table: {error}. Correct its quotes.") from error
    header = rows[0] if rows else []
    if not header or len(set(header)) < len(header):
        raise BadInput(f"{path}: the first row must name each column once; it is {header}.")
    for number, row in enumerate(rows, start=1):
        if len(row) != len(header):
            raise BadInput(f"{path}: row {number} has {len(row)} cells, not {len(header)}; quote commas.")
    return pd.DataFrame(rows[1:], columns=header, dtype=str)


def papers() -> dict[str, dict]:
    """Return slug -> {title, short, subject}; raises BadInput when `papers.yaml` is damaged."""
    return load_yaml(ROOT / "data_manifests" / "papers" / "papers.yaml")


def artifacts(paper: str | None = None) -> pd.DataFrame:
    """Return the artifacts of one paper, or of all; strings, index `id`.

    Raises BadInput for an unknown paper or a damaged `artifacts.csv`.
    """
    path = ROOT / "data_manifests" / "artifacts.csv"
    table = _artifacts(path, stamp(path))
    return table.copy() if paper is None else table[table["paper"] == choose("paper", paper, papers())]


@functools.lru_cache(maxsize=8)
def _artifacts(path: Path, stamp: tuple | None) -> pd.DataFrame:
    """`artifacts.csv`, read and checked once as long as it does not change."""
    table = read_table(path)
    if list(table.columns) != ["id", *ARTIFACT_COLUMNS]:
        raise BadInput(f"{path}: the columns must be id, {', '.join(ARTIFACT_COLUMNS)}.")
    if table["id"].duplicated().any():
        raise BadInput(f"{path}: id {table['id'][table['id'].duplicated()].iloc[0]!r} is given twice.")
    return table.set_index("id")


def artifact(id: str) -> pd.Series:
    """Return one row of `artifacts.csv`; an unknown id raises BadInput that names the nearest."""
    table = artifacts()
    return table.loc[choose("artifact", id, table.index)]


def published(artifact_id: str) -> pd.DataFrame:
    """Return the cells of a table exactly as printed: strings, and a column `doubt`.

    Raises BadInput when the artifact is unknown or no table, or its cells are lost or not copied yet.
    """
    row = artifact(artifact_id)
    if row["kind"] != "table":
        raise BadInput(f"{artifact_id} is a {row['kind']} and prints no cells; ask for a table.")
    folder = ROOT / "data_manifests" / "papers" / row["paper"]
    name = artifact_id.split(".", 1)[1]
    lost = load_yaml(folder / "lost.yaml") if (folder / "lost.yaml").exists() else {}
    if name in lost:
        raise BadInput(f"{artifact_id}: the text of the paper lost the cells. {lost[name]}")
    if not (folder / f"{name}.csv").exists():
        raise BadInput(f"{artifact_id} is not transcribed yet; write {folder / name}.csv.")
    table = read_table(folder / f"{name}.csv")
    if "doubt" not in table.columns:
        raise BadInput(f"{folder / name}.csv needs a column 'doubt', empty where the cell is clear.")
    return table


def claims(paper: str | None = None) -> list[Claim]:
    """Return the claims of one paper, or of all papers that have a `claims.yaml`, in file order.

    Raises BadInput for an unknown paper or a damaged entry; the message names line, entry and field.
    """
    files = {slug: ROOT / "data_manifests" / "papers" / slug / "claims.yaml" for slug in papers()}
    wanted = [s for s in files if files[s].exists()] if paper is None else [choose("paper", paper, files)]
    entries = [entry for slug in wanted for entry in load_yaml(files[slug])]
    return [Claim(**{**entry, "settles": tuple(entry["settles"])}) for entry in entries]


def claim(id: str) -> Claim:
    """Return one claim; an unknown id raises BadInput that names the nearest."""
    slug = str(id).split(".")[0]
    found = {c.id: c for c in claims(slug if slug in papers() else None)}
    return found[choose("claim", id, found)]
