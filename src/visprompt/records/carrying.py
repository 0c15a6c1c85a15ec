"""Carry records over to changed code, if a sample of them, run again, has equal values.

After a change that is meant to keep all values, some kept records are run again. If every one has
the same values to the last digit, the other records of their kinds are carried: each names the code
that would run for it today, the code that did run, and the sample. If one differs, nothing of its
kind is carried.

Two processors do not give the same last digits. A record of another machine is therefore compared
with a reference: the same run here by the older code, whose list of units must be the record's.
"""

import random
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from pathlib import Path

from ..errors import BadInput
from . import lists, source, store, test_images
from .keeping import keep_record, why_not
from .merging import difference
from .store import Record

# kinds that hold times and memory: no two runs are alike, so nothing could be compared
TIMED = {"bench", "cost", "turns"}
Pair = tuple[Record, Record]  # an outdated kept record, and the same run by today's code


@dataclass
class Carried:
    """What became of the outdated kept records, by kind."""

    carried: Counter = field(default_factory=Counter)
    sample: Counter = field(default_factory=Counter)  # how many of a kind were run again
    # of these, how many are equal to a reference alone
    referred: Counter = field(default_factory=Counter)
    # kind -> a line for each that came out otherwise
    differ: dict[str, list[str]] = field(default_factory=dict)
    # outdated ones of kinds of which none was run again
    without: Counter = field(default_factory=Counter)


def outdated() -> list[Record]:
    """The kept records made by other code than today's."""
    return [
        r for r in map(store.read_record, store.files(store.stores()[1])) if not store.is_current(r)
    ]


def again() -> list[Pair]:
    """Pairs of an outdated kept record and this machine's run by today's code; none of `TIMED`."""
    here, pairs = store.stores()[0], []
    for old in (record for record in outdated() if record.kind not in TIMED):
        path = here / store.place(old.kind, old.settings, old.key)
        if path.exists() and store.is_current(new := store.read_record(path)):
            pairs.append((old, new))
    return pairs


def drawn(
    records: Sequence[Record], count: int, seed: int, strata: Callable[[Record], Iterable[str]]
) -> list[Record]:
    """A random sample that contains every stratum once before any twice.

    Args:
        count: the size; larger if there are more strata.
        strata: the strata of a record, such as its kind, method and data set.
    """
    order, chosen, covered = random.Random(seed).sample(list(records), len(records)), [], set()
    for record in order:
        own = set(strata(record))
        if not own <= covered:
            covered |= own
            chosen.append(record)
    rest = [record for record in order if record not in chosen]
    return chosen + rest[: max(0, count - len(chosen))]


def carry(pairs: Sequence[Pair], seed: int | None = None, reference: Path | None = None) -> Carried:
    """Carry the outdated kept records of all kinds whose sample was run again with equal values.

    The sampled records themselves count as run.

    Args:
        reference: a folder of records that the older code made on this machine.

    Raises:
        BadInput: nothing was run again, or not by the code of a commit.
        CannotWrite: the disk is full, or the folder cannot be written.
    """
    if not pairs:
        raise BadInput(
            "no outdated kept record was run again by today's code; visprompt carry N "
            "runs a sample of N."
        )
    if why := next(filter(None, (why_not(new) for _, new in pairs)), ""):
        raise BadInput(f"a run of the sample cannot be kept: {why}.")
    outcome, same = Carried(sample=Counter(old.kind for old, _ in pairs)), []
    for old, new in pairs:
        other = difference(old.values, new.values)
        if other is not None and is_equal_to_reference(old, new, reference):
            outcome.referred[old.kind] += 1
        elif other is not None:
            line = "{}, {}: {} was {} and is {}".format(old.id, about(old), *other)
            outcome.differ.setdefault(old.kind, []).append(line)
        same.append((old.kind, store.units_of(old), store.units_of(new)))
    for old, new in pairs:
        if old.kind not in outcome.differ and difference(old.values, new.values) is None:
            keep_record(new)
    kinds = outcome.sample.keys() - outcome.differ.keys()
    images = {old.key: new.values for old, new in pairs}
    for record in [record for record in outdated() if record.kind in kinds]:
        units = translated(
            store.units_of(record), [(then, now) for kind, then, now in same if kind == record.kind]
        )
        mark = {
            "from": record.carried.get("from", record.code),
            "commit": store.commit(),
            "seed": seed,
        }
        mark |= {"sample": outcome.sample[record.kind], "referred": outcome.referred[record.kind]}
        done = with_images(record, images.get(record.key, {}))
        keep_carried(replace(done, carried=mark | {"date": date.today().isoformat()}), units)
        outcome.carried[record.kind] += 1
    outcome.without = Counter(r.kind for r in outdated() if r.kind not in outcome.differ)
    return outcome


def is_equal_to_reference(old: Record, new: Record, reference: Path | None) -> bool:
    """Whether older and today's code give equal values on this machine, by a reference record."""
    path = None if reference is None else reference / store.place(old.kind, old.settings, old.key)
    if path is None or not path.is_file():
        return False
    then = store.read_record(path)
    units = store.read_code(reference / "code" / f"{then.code}.json") or {}
    ran = {place: lists.bare(digest) for place, digest in units.items()}
    # what the reference did not use, such as a default that it was given otherwise, must be
    # unchanged to this day
    same_code = all(
        lists.bare(digest) in (ran.get(at), today(at, digest))
        for at, digest in store.units_of(old).items()
    )
    same_machine = (then.hardware, then.versions) == (new.hardware, new.versions)
    return same_code and same_machine and difference(then.values, new.values) is None


def with_images(record: Record, values: dict) -> Record:
    """The record, with the correctly classified images of a later run of equal accuracy.

    Unchanged if it states its own.
    """
    name = test_images.NAME
    if (
        name in record.values
        or name not in values
        or record.values.get("test") != values.get("test")
    ):
        return record
    return replace(record, values={**record.values, name: values[name]})


def keep_images(record: Record, new: Record) -> None:
    """Add the correctly classified images of a run of equal accuracy to a kept record.

    Raises:
        BadInput: the accuracy differs.
    """
    done = with_images(record, new.values)
    if done is record:
        raise BadInput(
            f"{about(record)}: test was {record.values.get('test')} and is "
            f"{new.values.get('test')}, so it stays."
        )
    path = store.stores()[1] / store.place(record.kind, record.settings, record.key)
    store.write_whole(path, store.as_text(store.with_id(done)))


def keep_carried(record: Record, units: dict[str, str]) -> None:
    """Rewrite a kept record with the list of units it would run today."""
    kept, name = store.stores()[1], store.short_hash(units)
    store.write_whole(kept / "code" / f"{name}.json", store.code_text(units))
    path = kept / store.place(record.kind, record.settings, record.key)
    store.write_whole(path, store.as_text(store.with_id(replace(record, code=name))))


def about(record: Record) -> str:
    """Kind and subject of a record in a few words."""
    s = record.settings
    return (
        " ".join(
            str(s[name])
            for name in ("method", "task", "backbone", "seed")
            if s.get(name) is not None
        )
        or record.kind
    )


def translated(units: dict[str, str], same: Sequence[tuple[dict, dict]]) -> dict[str, str]:
    """Today's units for a run in which these units were seen.

    A unit that still exists gets today's hash. Units that run newly are learned from the sample:
    they go with the changed units that every sampled run has that runs them, and no other sampled
    run; without such units, with any changed unit.

    Args:
        same: lists of the sampled runs, (then, now).
    """
    now = {place: lists.bare(digest) for _, new in same for place, digest in new.items()}
    kept = {place: today(place, digest) for place, digest in units.items()}
    changed = {place for place, digest in units.items() if kept[place] != lists.bare(digest)}
    kept = {place: digest for place, digest in kept.items() if digest is not None}
    pairs = [(changed_in(old, new), new.keys() - old.keys()) for old, new in same]
    for place in now.keys() - kept.keys():
        causes = [was for was, gained in pairs if place in gained]
        if not causes:
            continue
        common = set.intersection(*causes) - set().union(
            *(was for was, gained in pairs if place not in gained)
        )
        if changed & (common or set().union(*causes)):
            kept[place] = now[place]
    return lists.as_list(kept)


def changed_in(old: dict[str, str], new: dict[str, str]) -> set[str]:
    """The units of the old list that differ from the new list or are missing in it."""
    return {
        place
        for place, digest in old.items()
        if lists.bare(new.get(place, "")) != lists.bare(digest)
    }


def today(place: str, digest: str) -> str | None:
    """Today's hash of a unit, also if it moved; None if it is gone."""
    name, unit = place.split(":", 1)
    if name in lists.READ:
        return lists.READ[name](unit)
    at = source.module(name)
    if at is not None and unit in at.units:
        return source.hash_of(at, unit)
    return lists.bare(digest) if lists.stands({place: digest}) else None
