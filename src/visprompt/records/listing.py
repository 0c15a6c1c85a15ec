"""The records as a table, for people and for programs."""

import pandas as pd

from .. import records

COLUMNS = ("kind", "method", "task", "backbone", "seed", "rate", "test", "val", "current", "store", "date", "id")


def table(kind: str | None = None, *, outdated: bool = False, **wanted: str | None) -> pd.DataFrame:
    """One row a record, this machine's and the kept ones, with COLUMNS; what a kind does not have is empty.

    Args:
        kind: one kind of record.
        outdated: only those that other code made.
        wanted: columns and the value each must have; None for any.
    """
    rows = []
    for name, store in zip(("here", "kept"), records.stores(), strict=True):
        for path in records.store.files(store, kind or "*"):
            record = records.read_record(path)
            s, v = record.settings, record.values
            rate = "head_rate" if s.get("method") == "linear-probe" else "learning_rate"
            rows.append(
                {
                    **{column: s.get(column) for column in ("method", "task", "backbone", "seed")},
                    "kind": record.kind,
                    "rate": s.get("recipe", {}).get(rate),
                    "test": v.get("test"),
                    "val": v.get("val"),
                    "current": records.is_current(record),
                    "store": name,
                    "date": record.date,
                    "id": record.id,
                }
            )
    frame = pd.DataFrame(rows, columns=COLUMNS)
    for column, value in wanted.items():
        if value is not None:
            frame = frame[frame[column] == value]
    return frame[~frame.current.astype(bool)] if outdated else frame


def counts(frame: pd.DataFrame) -> dict[str, tuple[int, int]]:
    """Kind -> how many of its records are current, and how many there are."""
    return {kind: (int(part.current.sum()), len(part)) for kind, part in frame.groupby("kind")}
