"""The records as a table."""

from collections.abc import Callable
from itertools import compress

import pandas as pd

from ..errors import BadInput, choose
from . import index, store

SCORES = ("rate", "test", "val")
OF_SETTINGS = ("method", "task", "backbone", "seed")
# on the screen
COLUMNS = ("kind", *OF_SETTINGS, *SCORES, "current", "other_versions", "store", "date", "id")
MORE = (
    "key",
    "carried",
    "status",
    "profile",
    "recipe",
    "weights",
    "data",
    "commit",
    "seconds",
    *index.COMPARED,
    "python",
)
OTHER = "other"


def table(
    kind: str | None = None,
    *,
    outdated: bool = False,
    version: str | None = None,
    fits: Callable[[dict], bool] | None = None,
    **wanted: str | int | None,
) -> pd.DataFrame:
    """One row per record, this machine's and the kept ones: COLUMNS, MORE, then all other settings.

    Settings are flattened (`settings.recipe.epochs`; a list is its JSON) and sorted by name; those
    that no row has are left out, and missing ones are empty.

    Args:
        kind: one kind of record.
        outdated: only those made by other code than today's.
        version: "other" for those of another major or minor version of torch, torchvision or timm
            than is installed, or a version such as "torch=2.15".
        fits: a further condition on an entry of `index.entries`.
        wanted: columns of COLUMNS or MORE and the value each must have; None for any.

    Raises:
        BadInput: an unknown column, or no record has that kind, value or version; the message names
            those that exist.
    """
    for name in wanted:
        choose("filter of records", name, (*COLUMNS, *MORE))
    if kind is not None:
        choose("kind", kind, store.kinds())
    entries = list(index.entries(kind))
    rows = [row_of(entry) for entry in entries]
    kept = [True] * len(rows)
    for name, value in wanted.items():
        if value is not None:
            choose_of(
                name, str(value), [str(row[name]) for row in rows if row[name] not in (None, "")]
            )
            kept = [ok and str(row[name]) == str(value) for ok, row in zip(kept, rows, strict=True)]
    if version is not None:
        made = [versions_of(entry) for entry in entries]
        choose_of("version", version, [OTHER, *(name for names in made for name in names)])
        kept = [ok and version in names for ok, names in zip(kept, made, strict=True)]
    if fits is not None:
        kept = [ok and fits(entry) for ok, entry in zip(kept, entries, strict=True)]
    kept = [ok and not (outdated and row["current"]) for ok, row in zip(kept, rows, strict=True)]
    return framed(
        list(compress(rows, kept)), [entry["settings"] for entry in compress(entries, kept)]
    )


def row_of(entry: dict) -> dict:
    """A record as a row of `table`."""
    settings, about = entry["settings"], entry["about"]
    rate = "head_rate" if settings.get("method") == "linear-probe" else "learning_rate"
    return {
        **{column: settings.get(column) for column in OF_SETTINGS},
        **{
            name: entry[name]
            for name in "kind test val current store date id key carried status".split()
        },
        **{name: entry[name] for name in ("weights", "data", "commit", "seconds")},
        **{name: entry["versions"].get(name) for name in (*index.COMPARED, "python")},
        "rate": settings.get(f"recipe.{rate}"),
        "profile": about.get("profile"),
        "recipe": about.get("recipe"),
        "other_versions": index.other_versions(entry["versions"]),
    }


def framed(rows: list[dict], settings: list[dict]) -> pd.DataFrame:
    """Rows and their settings as a frame, columns in the order of `table`."""
    had = {name for each in settings for name, value in each.items() if value is not None}
    names, first = sorted(had - {*OF_SETTINGS}), (*COLUMNS, *MORE)
    cells = [
        [*map(row.get, first), *map(each.get, names)]
        for row, each in zip(rows, settings, strict=True)
    ]
    frame = pd.DataFrame(
        cells, columns=[*first, *(f"settings.{name}" for name in names)], dtype=object
    )
    for name, kind in {
        **dict.fromkeys((*SCORES, "seconds"), float),
        "current": bool,
        "carried": bool,
    }.items():
        frame[name] = frame[name].astype(kind)
    return frame


def versions_of(entry: dict) -> list[str]:
    """The values of `version` under which a record is listed."""
    made = [f"{name}={index.minor(version)}" for name, version in entry["versions"].items()]
    return [*([OTHER] if index.other_versions(entry["versions"]) else []), *made]


def choose_of(name: str, value: str, there: list[str]) -> None:
    """Check that some record has a value.

    Raises:
        BadInput: none has; the message names those that exist.
    """
    if not there:
        raise BadInput(
            f"no record here has a {name}; leave out that filter, or see: visprompt runs."
        )
    choose(name, value, dict.fromkeys(there))


def counts(frame: pd.DataFrame) -> dict[str, dict[str, int]]:
    """Kind -> numbers of records in all, current, carried to newer code, and of other versions."""
    numbers = frame[["kind", "current", "carried"]].assign(
        every=1, other=frame.other_versions != ""
    )
    return numbers.groupby("kind").sum().astype(int).to_dict("index")  # type: ignore[return-value]
