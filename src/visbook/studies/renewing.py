"""Records run again with their own settings: kept ones that other code made, and a sample to see
that they still hold."""

import random
from collections.abc import Iterator, Mapping
from pathlib import Path

from visprompt import records
from visprompt.data.tasks import embedded_tasks
from visprompt.errors import BadInput, choose
from visprompt.progress import progress
from visprompt.records import carrying, index, test_images
from visprompt.records.keeping import keep_record
from visprompt.records.merging import difference
from visprompt.training.loop import fitting_of

from .from_record import KINDS, again, ready
from .grids import share


def renew(
    kind: str,
    part: str = "1/1",
    weights: Mapping[str, str] = {},
    data_dir: str | None = None,
    lacking_images: bool = False,
    **only: str | None,
) -> int:
    """Run the outdated kept records of a kind again, and keep each once it is whole. Returns how
    many.

    Args:
        part: "2/3" takes the second of three shares; a record's key says which it is in, whatever
            others renew.
        weights: backbone -> file, for weights that are not published under its name.
        data_dir: folder of the tasks that are not embedded.
        lacking_images: instead those that do not say which test images were named right. One whose
            values have other last digits here, as by another processor, stays and takes up the
            images alone, if the accuracy is the same.
        only: settings such as method or task, and the value that each must have; None for any.

    Raises:
        BadInput: unknown kind, an impossible part, or, after the last, records that could not be
            renewed.
    """
    choose("kind", kind, KINDS)
    number, parts = share(part)
    kept = records.stores()[1]

    def wanted(record: records.Record) -> bool:
        if any(
            value is not None and record.settings.get(name) != value for name, value in only.items()
        ):
            return False
        return (
            test_images.NAME not in record.values
            if lacking_images
            else not records.is_current(record)
        )

    mine = [
        path
        for path in records.store.files(kept, kind)
        if int(path.stem.split(".")[-1], 16) % parts == number - 1
    ]
    todo = [path for path in mine if wanted(records.read_record(path))]
    done, failed = 0, []
    for path in progress(todo, f"renewing {kind}"):
        if not path.exists() or not wanted(old := records.read_record(path)):
            continue  # another process did it meanwhile
        try:
            new = again(old, weights, data_dir, "again" if lacking_images else True)
            if lacking_images and difference(old.values, new.values):
                carrying.keep_images(old, new)
                done += 1
                continue
            target = keep_record(new)
            if target != path:  # its settings are written otherwise by now
                path.unlink(missing_ok=True)
            done += 1
        except records.CannotWrite:
            raise
        except BadInput as error:
            failed.append(f"{old.id}: {error}")
    if failed:
        raise BadInput(f"{done} renewed, {len(failed)} could not be: " + " | ".join(failed[:5]))
    return done


def run_sample(
    count: int,
    seed: int,
    part: str = "1/1",
    weights: Mapping[str, str] = {},
    data_dir: str | None = None,
) -> tuple[int, list[str]]:
    """Run a sample of the outdated kept records again, for `records.carrying`; those done here
    already are not repeated.

    The sample has every kind, method, family of backbone and data set among them once before any
    more.

    Args:
        part: "1/2" and "2/2" share the runs between two processes.

    Returns:
        How many records the sample has, and a line for each that cannot be run here.
    """
    number, parts = share(part)
    known = [
        record
        for record in carrying.outdated()
        if record.kind in KINDS and record.kind not in carrying.TIMED
    ]
    chosen = carrying.drawn(known, count, seed, strata)
    failed = []
    for record in progress(chosen[number - 1 :: parts], f"running a sample again (seed {seed})"):
        try:
            again(record, weights, data_dir)
        except BadInput as error:
            failed.append(f"{record.id}: {error}")
    return len(chosen), failed


def without_equal(part: str = "1/1") -> list[records.Record]:
    """The outdated kept records that were run again here with other values, or a share of them."""
    number, parts = share(part)
    found = [
        old
        for old, new in carrying.again()
        if old.kind in KINDS and difference(old.values, new.values)
    ]
    return found[number - 1 :: parts]


def strata(record: records.Record) -> Iterator[str]:
    """What a sample should have of a record: its kind, method, data set and family of backbone."""
    s = record.settings
    yield f"kind {record.kind}"
    yield from (f"{name} {s[name]}" for name in ("method", "task") if isinstance(s.get(name), str))
    yield f"family {s['backbone'].split('_')[0]} of kind {record.kind}"


def what(record: records.Record) -> str:
    """What a record is of, for a line."""
    s = record.settings
    return (
        f"{s['method']} on {s['task']}, {s['backbone']}, seed {s['seed']}"
        if record.kind == "tune"
        else s["backbone"]
    )


def verify(
    count: int, seed: int = 0, weights: Mapping[str, str] = {}, data_dir: str | None = None
) -> Iterator[dict[str, str | float]]:
    """Run some current kept records of training again and compare, without leaving records.

    Records that were carried to newer code come first, since nobody has run them by it; then those
    of other versions of torch, torchvision or timm than are installed; then the rest. Without
    `data_dir` only embedded tasks are drawn.

    Yields:
        A row as each is done: "record", "what", "kept" and "now" (test accuracy, percent),
            "difference", and "note": what of processor, threads and versions differs between the
            machine that made the record and this one.

    Raises:
        BadInput: an impossible count, no record to draw from, or one whose weights or images are
            not here.
    """
    if count < 1:
        raise BadInput(f"verify reruns 1 record or more, not {count}.")
    kept = [
        entry for entry in index.entries("tune") if entry["store"] == "kept" and entry["current"]
    ]
    if not kept:
        raise BadInput(
            "no kept record of kind tune is current; renew some first: visprompt renew tune."
        )
    if data_dir is None:
        kept = [entry for entry in kept if entry["settings"]["task"] in embedded_tasks()]
    if not kept:
        raise BadInput(
            "no current kept record is of an embedded task; give the folder of the "
            "others: --data-dir FOLDER."
        )
    random.Random(seed).shuffle(kept)
    kept.sort(
        key=lambda entry: (
            0 if entry["carried"] else 1 if index.other_versions(entry["versions"]) else 2
        )
    )
    for entry in progress(kept[:count], "verifying"):
        record = records.read_record(Path(entry["path"]))
        made = ready(record, weights, data_dir)
        now = fitting_of(made["recipe"], made["model"])(**made)["test"]
        yield {
            "record": record.id,
            "what": what(record),
            "kept": record.values["test"],
            "now": now,
            "difference": round(now - record.values["test"], 4),
            "note": other_machine(record),
        }


def other_machine(record: records.Record) -> str:
    """What differs between the machine that made a record and this one; "" where nothing does."""
    there, here = (
        {**record.hardware, **record.versions},
        {**records.hardware(), **records.versions()},
    )
    names = ("cpu", "threads", "torch", "torchvision", "timm", "python")
    pairs = {name: (str(there.get(name, "unknown")), str(here[name])) for name in names}
    return "; ".join(
        f"{name} {made}, here {mine}" for name, (made, mine) in pairs.items() if made != mine
    )
