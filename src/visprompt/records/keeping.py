"""Which runs the project keeps: whole ones, by the code of a commit that can be looked up."""

import time
from collections import Counter
from pathlib import Path

from ..errors import BadInput
from . import store
from .store import Record


def why_not(record: Record) -> str:
    """Why a record is not one to keep; "" where it is."""
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
    """Copy one of this machine's records, and the list of its code, to the kept ones; return where it is.

    Raises:
        BadInput: it is none to keep.
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


def keep(kind: str | None = None) -> tuple[int, Counter]:
    """Keep this machine's records. Returns how many, and how many were not, by reason.

    Raises:
        BadInput: no record is of that kind.
    """
    here, kept = store.stores()
    for folder in (here, kept):
        store.sweep_parts(folder)
    kinds = sorted({path.relative_to(here).parts[0] for path in store.files(here)})
    if kind is not None and kind not in kinds:
        raise BadInput(f"there is no record of kind {kind!r} in {here}; there are: {', '.join(kinds) or 'none at all'}.")
    count, refused = 0, Counter()
    for path in store.files(here, kind or "*"):
        try:
            record = store.read_record(path)
        except BadInput:
            refused["damaged"] += 1
            continue
        why = why_not(record)
        if why:
            refused[why] += 1
        else:
            keep_record(record)
            count += 1
    drop_unused_code(kept)
    return count, refused


def drop_unused_code(folder: Path) -> None:
    """Remove lists of code that no record of a store names; young ones stay, since their record may come yet."""
    used = {store.read_record(path).code for path in store.files(folder)}
    for path in (folder / "code").glob("*.json"):
        if path.stem not in used and time.time() - path.stat().st_mtime > 3600:
            path.unlink(missing_ok=True)
