"""Read and check `data_manifests/`: the papers, their artifacts, printed cells and claims.

Small text files written by hand; their schema is in `data_manifests/papers/README.md`.
"""

import copy
import csv
import functools
import os
from dataclasses import MISSING, dataclass, fields
from pathlib import Path

import pandas as pd
import yaml

from visprompt.errors import BadInput, choose

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
    """Return what the YAML file holds.

    Raises:
        BadInput: the file is missing, is not YAML, is empty, or names a key twice.
    """
    try:
        content = _parsed(Path(path), Path(path).stat().st_mtime_ns)
    except FileNotFoundError:
        raise BadInput(f"{path} does not exist; restore it from the repository.") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise BadInput(f"{path} is not readable YAML: {error}. Correct the line it names.") from error
    if not isinstance(content, (dict, list)):
        raise BadInput(f"{path} holds no list or mapping; write '[]' for an empty one.")
    return copy.deepcopy(content)  # what a caller changes is its own


@functools.lru_cache(maxsize=64)
def _parsed(path: Path, changed: int) -> object:
    """A file parsed once as long as it does not change: a chapter reads the same few thousands of times."""
    return yaml.load(path.read_text(encoding="utf-8"), Loader=_StrictLoader)


class _StrictLoader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
    """A YAML loader that refuses a key given twice, which plain YAML drops in silence."""

    def construct_mapping(self, node, deep=False):
        keys = [key.value for key, _ in node.value]
        for key in keys:
            if keys.count(key) > 1:
                raise yaml.constructor.ConstructorError(None, None, f"{key!r} given twice", node.start_mark)
        return super().construct_mapping(node, deep)


def read_table(path: Path) -> pd.DataFrame:
    """Return a CSV file with every cell as the string in the file, empty cells as "".

    Raises BadInput when it is missing, is not CSV, or has rows of unlike length or a column twice.
    """
    try:
        with open(path, encoding="utf-8", newline="") as file:
            rows = list(csv.reader(file, strict=True))
    except FileNotFoundError:
        raise BadInput(f"{path} does not exist; restore it from the repository.") from None
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
    path = ROOT / "data_manifests" / "papers" / "papers.yaml"
    content = load_yaml(path)
    for slug, entry in content.items() if isinstance(content, dict) else [("?", None)]:
        if not isinstance(entry, dict) or not {"title", "short", "subject"} <= set(entry):
            raise BadInput(f"{path}: paper {slug!r} needs the keys title, short and subject.")
    return content


def artifacts(paper: str | None = None) -> pd.DataFrame:
    """Return the artifacts of one paper, or of all; strings, index `id`.

    Raises BadInput for an unknown paper or a damaged `artifacts.csv`.
    """
    path = ROOT / "data_manifests" / "artifacts.csv"
    table = _artifacts(path, path.stat().st_mtime_ns if path.exists() else 0)
    return table.copy() if paper is None else table[table["paper"] == choose("paper", paper, papers())]


@functools.lru_cache(maxsize=8)
def _artifacts(path: Path, changed: int) -> pd.DataFrame:
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

    Raises BadInput for an unknown paper or a damaged entry; the message names entry and field.
    """
    files = {slug: ROOT / "data_manifests" / "papers" / slug / "claims.yaml" for slug in papers()}
    wanted = [s for s in files if files[s].exists()] if paper is None else [choose("paper", paper, files)]
    known = set(artifacts().index)
    found: dict[str, Claim] = {}
    for path in (files[slug] for slug in wanted):
        for position, entry in enumerate(load_yaml(path), start=1):
            new = _claim(entry, f"{path}, entry {position}", known)
            if new.id in found:
                raise BadInput(f"{path}: claim {new.id!r} is given twice; rename one.")
            found[new.id] = new
    return list(found.values())


def claim(id: str) -> Claim:
    """Return one claim; an unknown id raises BadInput that names the nearest."""
    slug = str(id).split(".")[0]
    found = {c.id: c for c in claims(slug if slug in papers() else None)}
    return found[choose("claim", id, found)]


def _claim(entry: object, place: str, known: set[str]) -> Claim:
    """Check one entry of a `claims.yaml` and return it; `place` begins the message of a refusal."""
    if not isinstance(entry, dict):
        raise BadInput(f"{place}: write a mapping with the fields of a claim.")
    for name in entry:
        choose(f"field in {place}:", name, [f.name for f in fields(Claim)])
    place = f"{place} ({entry.get('id', 'without id')})"
    missing = [f.name for f in fields(Claim) if f.default is MISSING and not entry.get(f.name)]
    if missing:
        raise BadInput(f"{place}: write the field {missing[0]!r}.")
    for name in ("published", "margin", "tolerance"):
        value = entry.get(name)
        if value is not None and (isinstance(value, bool) or not isinstance(value, (int, float))):
            raise BadInput(f"{place}: {name} is {value!r}; write a number (1.0e-6, not 1e-6).")
    settles = entry["settles"] if isinstance(entry["settles"], list) else [entry["settles"]]
    found = Claim(**{**entry, "settles": tuple(choose("evidence", s, EVIDENCE) for s in settles)})
    choose(f"direction in {place}:", found.direction, DIRECTIONS)
    if found.artifact not in known or not found.id.startswith(found.artifact + "."):
        raise BadInput(f"{place}: the id must be '<artifact id>.<short slug>' of a known artifact.")
    if found.direction == "equal" and (found.published is None or found.tolerance is None):
        raise BadInput(f"{place}: direction 'equal' needs published and tolerance as numbers.")
    if found.direction != "equal" and found.margin is None:
        raise BadInput(f"{place}: direction {found.direction!r} needs a margin; write 0 for none.")
    return found
