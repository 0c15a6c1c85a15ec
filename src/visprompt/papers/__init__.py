"""What the papers print: artifacts, cells and claims of `data_manifests/papers/`."""

import functools
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import pandas as pd

from .. import paths
from ..errors import BadInput, choose
from ..manifests import load_yaml, read_table, stamp
from ..manifests.schema import Number, Text, Whole, listed, one_of
from ..words import EVIDENCE, WEIGHTS

ARTIFACT_COLUMNS = (
    "paper",
    "kind",
    "number",
    "title",
    "shows",
    "backbone",
    "datasets",
    "scale_needed",
)
DIRECTIONS = ("greater", "less", "equal")


@dataclass(frozen=True)
class Claim:
    """A checkable statement of a paper, and what would settle it.

    `direction` says how an estimate with an interval is compared with it:

    * "greater": the estimate is a difference or a slope; yes if the whole interval is above
      `margin`, no if it is wholly below. "less" is the mirror image.
    * "equal": the estimate is a number; yes if the interval lies inside `published` +- `tolerance`,
      no if the two are disjoint.
    * Anything else is neither. `words.answers` has the words for the three outcomes.
    """

    id: Text  # "<artifact id>.<short slug>"
    artifact: Text  # id in artifacts.csv
    where: Text  # where the paper prints it
    metric: Text  # what the estimate is, with its unit
    direction: Annotated[str, one_of(DIRECTIONS)]
    why: Text  # the reason for the margin or the tolerance
    settles: Annotated[
        tuple[str, ...], listed(one_of(EVIDENCE, "evidence"), uniqueItems=True)
    ]  # the kinds of evidence that could settle it
    printed: Text = ""  # the value as printed, or the statement in short
    says: Text = ""  # of a value or a part of a sentence: what it asserts, in our words
    published: Number = None  # the same as a number; "equal" needs it
    margin: Number = None  # "greater" and "less"
    tolerance: Annotated[float | None, {"type": "number", "minimum": 0}] = None  # "equal"
    weight: Annotated[str, one_of(WEIGHTS)] = "detail"
    data_sets: Whole = 1  # how many it speaks of: one task cannot stand for several
    least: Number = None  # what the estimate cannot be below, such as 0 of a share, ...
    most: Number = None  # ... and above
    exceptions: bool = False  # the estimate counts what speaks against the claim


def papers() -> dict[str, dict]:
    """Slug -> {title, short, subject, perhaps drawing, theory and proposes}.

    Raises:
        BadInput: `papers.yaml` is damaged.
    """
    return load_yaml(paths.MANIFESTS / "papers" / "papers.yaml")


def paper_of(artifacts: Iterable[str]) -> str:
    """The slug of the paper that all these artifacts are of; "" of none, or of several papers."""
    slugs = {id.partition(".")[0] for id in artifacts}
    return slugs.pop() if len(slugs) == 1 else ""


def theories() -> dict[str, str]:
    """Return slug -> what the kinds of its theory's records begin with, of the papers with one."""
    return {slug: paper["theory"] for slug, paper in papers().items() if "theory" in paper}


def artifacts(paper: str | None = None) -> pd.DataFrame:
    """The artifacts of one paper, or of all: strings, index `id`.

    Raises:
        BadInput: an unknown paper, or a damaged `artifacts.csv`.
    """
    path = paths.MANIFESTS / "artifacts.csv"
    table = _artifacts(path, stamp(path))
    return (
        table.copy() if paper is None else table[table["paper"] == choose("paper", paper, papers())]
    )


@functools.lru_cache(maxsize=8)
def _artifacts(path: Path, stamp: tuple | None) -> pd.DataFrame:
    """`artifacts.csv`, read and checked once as long as it is unchanged."""
    table = read_table(path)
    if list(table.columns) != ["id", *ARTIFACT_COLUMNS]:
        raise BadInput(f"{path}: the columns must be id, {', '.join(ARTIFACT_COLUMNS)}.")
    if table["id"].duplicated().any():
        raise BadInput(
            f"{path}: id {table['id'][table['id'].duplicated()].iloc[0]!r} is given twice."
        )
    return table.set_index("id")


def artifact(id: str) -> pd.Series:
    """One row of `artifacts.csv`.

    Raises:
        BadInput: an unknown id; the message names the nearest.
    """
    table = artifacts()
    return table.loc[choose("artifact", id, table.index)]  # type: ignore[return-value]


def published(artifact_id: str) -> pd.DataFrame:
    """The cells of a table exactly as printed: strings, and a column `doubt`.

    Raises:
        BadInput: the artifact is unknown or not a table, or its cells are lost or not copied yet.
    """
    row = artifact(artifact_id)
    if row["kind"] != "table":
        raise BadInput(f"{artifact_id} is a {row['kind']} and prints no cells; ask for a table.")
    folder = paths.MANIFESTS / "papers" / row["paper"]
    name = artifact_id.split(".", 1)[1]
    lost = load_yaml(folder / "lost.yaml") if (folder / "lost.yaml").exists() else {}
    if name in lost:
        raise BadInput(f"{artifact_id}: the text of the paper lost the cells. {lost[name]}")
    if not (folder / f"{name}.csv").exists():
        raise BadInput(f"{artifact_id} is not transcribed yet; write {folder / name}.csv.")
    table = read_table(folder / f"{name}.csv")
    if "doubt" not in table.columns:
        raise BadInput(
            f"{folder / name}.csv needs a column 'doubt', empty where the cell is clear."
        )
    return table


def claims(paper: str | None = None) -> list[Claim]:
    """The claims of one paper, or of all papers with a `claims.yaml`, in file order.

    Raises:
        BadInput: an unknown paper or a damaged entry; the message names line, entry and field.
    """
    files = {slug: paths.MANIFESTS / "papers" / slug / "claims.yaml" for slug in papers()}
    wanted = (
        [s for s in files if files[s].exists()]
        if paper is None
        else [choose("paper", paper, files)]
    )
    entries = [entry for slug in wanted for entry in load_yaml(files[slug])]
    return [Claim(**{**entry, "settles": tuple(entry["settles"])}) for entry in entries]


def claim(id: str) -> Claim:
    """One claim.

    Raises:
        BadInput: an unknown id; the message names the nearest.
    """
    slug = str(id).split(".")[0]
    known = {c.id: c for c in claims(slug if slug in papers() else None)}
    return known[choose("claim", id, known)]
