"""Add the records in another machine's folder to this machine's."""

import re
import typing
from dataclasses import dataclass, field
from pathlib import Path

from ..checks import require
from ..errors import BadInput
from . import store, test_images
from .store import Record

MEASURED = ("seconds", "memory", "_mb")  # in the names of values that no two runs have alike
ADDED = {test_images.NAME}  # values that older records lack


@dataclass
class Merged:
    """What became of the records of a folder."""

    added: int = 0
    there: int = 0  # of runs that are here already, with the same values
    refused: list[str] = field(default_factory=list)  # a line each


def merge(folder: Path) -> Merged:
    """Add the records of another machine's folder to this machine's own.

    If two records of one run have different values, the one here stays, unless it alone is of older
    code; the other is refused, and both are named.

    Raises:
        BadInput: the folder holds no record.
        CannotWrite: the disk is full, or the folder cannot be written.
    """
    own, outcome = store.stores()[0], Merged()
    paths = list(store.files(folder))
    if not paths:
        raise BadInput(
            f"{folder} holds no record; give a folder such as another machine's build/records."
        )
    for path in paths:
        try:
            record = whole_record(path)
        except BadInput as error:
            outcome.refused.append(str(error))
            continue
        units = store.read_code(folder / "code" / f"{record.code}.json")
        if units is not None:  # first what the record needs
            store.write_code(units)
        place = own / store.place(record.kind, record.settings, record.key)
        here = store.read_record(place) if place.exists() else None
        other = here and difference(here.values, record.values)
        if here is not None and other is None and not ADDED & ({*record.values} - {*here.values}):
            outcome.there += 1
        elif (
            here is None
            or other is None
            or (store.is_current(record) and not store.is_current(here))
        ):
            store.write_whole(place, store.as_text(record))
            outcome.added += 1
        else:
            outcome.refused.append(disagreement(here, record, other))  # type: ignore[arg-type]
    return outcome


def whole_record(path: Path) -> Record:
    """Read another machine's record and check the types of its fields.

    Raises:
        BadInput: it is damaged, or a field has another type.
    """
    record = store.read_record(path)
    for name, hint in typing.get_type_hints(Record).items():
        require(f"record {path} is none of this program: {name}", getattr(record, name), hint)
    for name in ("key", "code"):
        if not re.fullmatch("[0-9a-f]{12}", getattr(record, name)):
            value = getattr(record, name)
            raise BadInput(
                f"record {path} is none of this program: {name} must be twelve hex digits, "
                f"not {value!r}."
            )
    return record


def disagreement(here: Record, other: Record, values: tuple) -> str:
    """The different values of two records of one run, in one line."""
    name, mine, theirs = values
    about = (
        " ".join(
            str(here.settings[part]) for part in ("method", "task", "seed") if part in here.settings
        )
        or here.kind
    )
    texts = [
        f"{r.id} ({r.hardware.get('cpu', 'unknown')}, {r.date}) has {v}"
        for r, v in ((here, mine), (other, theirs))
    ]
    return (
        f"{about}, {name}: {' and '.join(texts)}; the first is here and stays. Delete "
        f"it, or run it again."
    )


def difference(one, other, name: str = "values") -> tuple | None:
    """The first value that differs, measurements apart, as (name, one, other); None if equal."""
    if isinstance(one, dict) and isinstance(other, dict):
        names = [key for key in {**one, **other} if not any(word in key for word in MEASURED)]
        names = [key for key in names if key not in ADDED or (key in one and key in other)]
        pairs = [(key, one.get(key), other.get(key)) for key in names]
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        pairs = [(f"{name}[{i}]", a, b) for i, (a, b) in enumerate(zip(one, other, strict=True))]
    else:
        return None if one == other else (name, one, other)
    return next(
        (inner for key, a, b in pairs if (inner := difference(a, b, key)) is not None), None
    )
