"""Records: what a run leaves, what decided it, and whether it is still current.

`recorded` does a run or finds its record. A record is identified by its settings, its data, its
weights and the code that ran, found by watching it (`watch`) and hashed from today's source
(`source`). `store` reads and writes.
"""

import json
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, is_dataclass

from ..errors import BadInput, CannotWrite
from ..progress import log, progress
from . import code_objects, lists, source, store, watch
from .merging import difference, disagreement
from .store import (
    Record,
    all_records,
    commit,
    find_record,
    find_records,
    fingerprint_file,
    hardware,
    is_current,
    read_record,
    short_hash,
    stores,
    versions,
    write_whole,
)
from .watch import in_own_process, remember, unwatched, watching

__all__ = [
    "CannotWrite",
    "Record",
    "all_records",
    "commit",
    "find_record",
    "find_records",
    "fingerprint_file",
    "forget_failure",
    "hardware",
    "in_own_process",
    "is_current",
    "key_of",
    "read_record",
    "record_failure",
    "recorded",
    "remember",
    "run_all",
    "short_hash",
    "store",
    "stores",
    "unwatched",
    "versions",
    "watching",
    "write_whole",
]


def recorded(
    kind: str,
    settings: Mapping,
    compute: Callable[[], Mapping],
    *,
    data: str = "",
    weights: str = "",
    made: Iterable = (),
    about: Mapping | None = None,
    run: bool | str = True,
) -> Record | None:
    """Return the record of this run, computing it only if no current one exists.

    Args:
        kind: folder of the record, such as "tune".
        settings: everything that was chosen, as JSON values or dataclasses. A dataclass field left
            at its default does not enter the key; its default counts as code, so that changing it
            outdates the record.
        compute: does the run and returns its values: JSON values without NaN. The code that it runs
            is watched.
        data, weights: fingerprints of the data and of the weights used.
        made: objects made earlier and used here (a model, a backbone): the code in their `made_by`
            counts as run.
        about: other information for readers; decides nothing.
        run: False only looks; it also returns a record made by other code (see `is_current`), and
            None if there is none. "again" always runs.

    Raises:
        BadInput: the record on disk is damaged. Errors of `compute` are recorded, then pass
            through.
        CannotWrite: the disk is full or the folder cannot be written.
    """
    full, brief = spread(settings)
    key = short_hash([kind, brief, data, weights])
    kept = store.find(kind, full, key)
    if not run or (
        run != "again" and kept is not None and is_current(kept) and made_with(kept, compute)
    ):
        return kept
    start, how = time.perf_counter(), {"data": data, "weights": weights, "about": dict(about or {})}
    try:
        values, units = watched(compute, made)
        how["code"] = store.write_code(units | defaults(settings))
        done = store.new_record(kind, key, full, values, start, **how)
        rival = store.write_record(done, kept)
        if run != "again" and rival is not None and is_current(rival) and made_with(rival, compute):
            if other := difference(rival.values, done.values):
                print(disagreement(rival, done, other), file=log(), flush=True)
            # another process did the same run meanwhile, and a page may name its record already
            done = rival
        elif rival is not None:
            store.write_record(done, rival)
    except CannotWrite:
        raise
    except Exception as error:
        record_failure(kind, full, error, key, start)
        raise
    failure_path(kind, key).unlink(missing_ok=True)
    return done


def watched(compute: Callable, made: Iterable) -> tuple[dict, dict[str, str]]:
    """A run's values as JSON values, and the units of code that ran for it and for `made`."""
    with watching() as seen:
        for thing in made:
            watch.note(getattr(thing, "made_by", watch.Seen()))
        values = json.loads(json.dumps(dict(compute()), allow_nan=False))
    return values, seen.units()


def made_with(record: Record, compute: Callable) -> bool:
    """Whether a record comes from this function, not another one that names its run the same."""
    code = getattr(getattr(compute, "func", compute), "__code__", None)
    watched = code is not None and (
        code_objects.is_ours(code) or code_objects.is_a_users(code, compute.__module__)
    )
    own = code_objects.unit_of(code) if watched else None
    return own is None or code_objects.said_by(*own) in map(
        lists.bare, store.units_of(record).values()
    )


def key_of(kind: str, settings: Mapping, data: str = "", weights: str = "") -> str:
    """The key of a run: a hash of all that was decided before it."""
    return short_hash([kind, spread(settings)[1], data, weights])


def spread(value) -> tuple:
    """A value as JSON values, and the same without dataclass fields left at their defaults."""
    if is_dataclass(value) and not isinstance(value, type):
        every = {f.name: spread(getattr(value, f.name)) for f in fields(value)}
        left = {f.name for f in fields(value) if getattr(value, f.name) == f.default}
        return {name: both[0] for name, both in every.items()}, {
            n: b[1] for n, b in every.items() if n not in left
        }
    if isinstance(value, Mapping):
        every = {str(name): spread(part) for name, part in value.items()}
        return {name: both[0] for name, both in every.items()}, {
            name: both[1] for name, both in every.items()
        }
    if isinstance(value, (list, tuple)):
        every = [spread(part) for part in value]
        return [both[0] for both in every], [both[1] for both in every]
    return value, value


def defaults(value) -> dict[str, str]:
    """Place -> hash of the default values that `spread` leaves out."""
    if isinstance(value, Mapping):
        return {
            place: digest for part in value.values() for place, digest in defaults(part).items()
        }
    if isinstance(value, (list, tuple)):
        return {place: digest for part in value for place, digest in defaults(part).items()}
    units = {}
    if is_dataclass(value) and not isinstance(value, type):
        for name, unit in code_objects.units_of_defaults(value):
            units[f"{name}:{unit}"] = source.hash_of(source.module(name), unit)
        for f in fields(value):
            units |= defaults(getattr(value, f.name))
    return units


def failure_path(kind: str, key: str):
    """Path of a run's failure record, which is deleted when the run succeeds."""
    return stores()[0] / "failed" / store.plain(kind) / f"{key}.json"


def forget_failure(kind: str, settings: dict) -> None:
    """Delete the failure record of a run that has succeeded since."""
    failure_path(kind, short_hash([kind, settings])).unlink(missing_ok=True)


def record_failure(
    kind: str, settings: dict, error: Exception, key: str = "", start: float | None = None
) -> None:
    """Write a record of a failed run, even one that failed before data or weights were loaded."""
    start = time.perf_counter() if start is None else start
    key, why = key or short_hash([kind, settings]), f"{type(error).__name__}: {error}"
    failed = store.new_record(kind, key, settings, {}, start, status="failed", error=why)
    write_whole(failure_path(kind, key), store.as_text(failed))


def run_all(jobs: Iterable[tuple[str, Callable[[], Record]]], label: str) -> list[Record]:
    """Run named jobs in turn with a progress bar; a failed job does not stop the others.

    Raises:
        BadInput: after the last job, if any failed; each failure is named.
        CannotWrite: at the first result that cannot be saved.
    """
    jobs, done, failures = list(jobs), [], {}
    for name, job in progress(jobs, label):
        try:
            done.append(job())
        except CannotWrite:
            raise
        except Exception as error:
            why = str(error) if isinstance(error, BadInput) else f"{type(error).__name__}: {error}"
            failures.setdefault(why, []).append(name)
    if failures:
        count = sum(map(len, failures.values()))  # type: ignore[arg-type]
        lines = [
            f"{names[0]}{f' and {len(names) - 1} more' if names[1:] else ''}: {why}"
            for why, names in failures.items()
        ]
        raise BadInput(
            f"{count} of {len(jobs)} runs failed; their records say so. " + " | ".join(lines)
        )
    return done
