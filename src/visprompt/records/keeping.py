"""Which runs the project keeps: complete ones, made by the code of a known commit."""

import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from ..errors import BadInput
from . import store
from .store import Record


def why_not(record: Record) -> str:
    """Why a record cannot be kept; "" if it can."""
    if record.about.get("rehearsal"):
        return record.about["rehearsal"]
    if record.status != "done":
        return "failed"
    if not store.is_current(record):
        return "made by other code than today's"
    if "+changes" in record.commit or not is_known(record.commit):
        return "not made from a committed tree (commit the code, then run again)"
    return ""


def is_known(commit: str, known: dict = {}) -> bool:
    """Whether the repository has a commit."""
    if commit not in known:
        known[commit] = store.git("cat-file", "-e", f"{commit}^{{commit}}") is not None
    return known[commit]


def keep_record(record: Record) -> Path:
    """Copy one of this machine's records and its code list to the kept ones; return the new path.

    Raises:
        BadInput: it cannot be kept.
        CannotWrite: the disk is full, or the folder cannot be written.
    """
    why = why_not(record)
    if why:
        raise BadInput(f"record {record.id} is not kept: {why}.")
    here, kept = store.stores()
    units = store.read_code(here / "code" / f"{record.code}.json")
    if units is not None:  # first what the record needs, so that a reader finds all of it
        store.write_whole(kept / "code" / f"{record.code}.json", store.code_text(units))
    target = kept / store.place(record.kind, record.settings, record.key)
    if not target.exists() or store.read_record(target) != record:
        store.write_whole(target, store.as_text(record))
    return target


def keep(
    kind: str | None = None,
    *,
    asked: Callable[[Record], bool] = lambda record: True,
    foreign: Callable[[Record], str] = lambda record: "",
    dry_run: bool = False,
) -> tuple[list[Path], Counter]:
    """Copy this machine's records to the kept ones.

    Args:
        kind: only records of this kind.
        asked: only records for which this is true.
        foreign: why a record is not the project's, in addition to `why_not`; "" if it is.
        dry_run: write nothing.

    Returns:
        The paths of the kept records, and the numbers of those that were not kept, by reason.

    Raises:
        BadInput: no record is of that kind.
    """
    here, kept = store.stores()
    kinds = sorted({path.relative_to(here).parts[0] for path in store.files(here)})
    if kind is not None and kind not in kinds:
        raise BadInput(
            f"there is no record of kind {kind!r} in {here}; there are: "
            f"{', '.join(kinds) or 'none at all'}."
        )
    if not dry_run:
        for folder in (here, kept):
            store.sweep_parts(folder)
    places, refused = [], Counter()
    for path in store.files(here, kind or "*"):
        try:
            record = store.read_record(path)
        except BadInput:
            refused["damaged"] += 1
            continue
        if not asked(record):
            continue
        if why := why_not(record) or foreign(record):
            refused[why] += 1
        else:
            places.append(
                kept / store.place(record.kind, record.settings, record.key)
                if dry_run
                else keep_record(record)
            )
    if not dry_run:
        drop_unused_code(kept)
    return places, refused


def drop_unused_code(folder: Path) -> None:
    """Delete code lists that no record of a store names, except recent ones."""
    used = {store.read_record(path).code for path in store.files(folder)}
    for path in (folder / "code").glob("*.json"):
        if path.stem not in used and time.time() - path.stat().st_mtime > 3600:
            path.unlink(missing_ok=True)
