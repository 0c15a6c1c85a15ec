"""The first hour on a card, in parts that each leave their results whole: `make card`.

Every part has its seconds. What is not done by then is left out, and said so in the part's file; a
part that fails leaves its error, and the next one goes on. Measurements are records, of kinds
bench, turns and cost; they lie in records.tgz too, for `visprompt merge`.
"""

import argparse
import json
import os
import signal
import sys
import tarfile
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from visprompt import records
from visprompt.data.tasks import load_task
from visprompt.errors import choose
from visprompt.paths import ROOT
from visprompt.records import Record, recorded, unwatched
from visprompt.training.recipe import Recipe

from ..timing import ap_tables, card_fits, card_run
from ..timing.clock import machine
from . import bench
from .bench_table import rows

SMALL, MICRO = "vit_small_patch16_224", "vit_micro_patch4_24"
PARTS = {  # seconds of each, unless told otherwise
    "methods": 100,
    "bench": 150,
    "run": 130,
    "photographs": 90,
    "ap-tables": 100,
    "loaders": 20,
}
FIRST = ("bf16-compiled", "vpt-deep-100-bf16", "ap-cached-bf16", "da-vpt-bf16", "ivpt-bf16")


@dataclass
class Setup:
    """What the parts of one call share.

    Attributes:
        folder: weights/ and photographs/ of the part photographs.
        tiny: small networks and few images, to try the parts themselves.
        told: what happened, line by line, of the part that runs.
    """

    device: str
    folder: Path
    workers: int
    tiny: bool = False
    told: list[str] = field(default_factory=list)
    end: float = 0.0

    def left(self) -> float:
        """Seconds that the part that runs still has."""
        return self.end - time.monotonic()


def of_methods(setup: Setup) -> Iterator[Record]:
    """Every method on the card and on the processor."""
    few = ["vpt-deep", "ap"] if setup.tiny else None
    compiles = not setup.tiny
    given = (setup.device, setup.workers, setup.left(), few, compiles)
    record = card_fits.agreement(*given)
    setup.told.append(
        f"largest relative difference of a loss: {card_fits.far(record.values['fits'])}"
    )
    setup.told += [f"{name}: {why}" for name, why in record.values["failed"].items()]
    yield record


def of_bench(setup: Setup) -> Iterator[Record]:
    """Rows of `visprompt bench`, those first that tell most."""
    jobs = []
    for model in [MICRO] if setup.tiny else [bench.BASE, SMALL]:
        found = bench.jobs([model], setup.device, 2 if setup.tiny else None, 3)
        named = {
            getattr(job, "args", ("",))[0]: (f"{job.args[0]}, {model}", job)
            for _, job in found
            if getattr(job, "func", None) is bench.pair_in_turns
        }
        order = [name for name in FIRST if name in named]
        jobs.append([named[name] for name in [*order, *sorted({*named} - {*order})]])
        jobs.append(
            [(what, job) for what, job in found if what in ("every method", "SPT's starts")]
        )
    first = len(FIRST)
    pieces = [part[:first] for part in jobs[::2]] + [part[:1] for part in jobs[1::2]]
    pieces += [part[first:] for part in jobs[::2]] + [part[1:] for part in jobs[1::2]]
    yield from each(setup, [job for piece in pieces for job in piece])


def each(setup: Setup, jobs: list[tuple[str, Callable]]) -> Iterator[Record]:
    """The records of jobs, one after the other while there is time."""
    for label, job in jobs[:2] if setup.tiny else jobs:
        if setup.left() < 0:
            setup.told.append(f"{label}: no time was left")
            continue
        try:
            yield job()
        except Exception as error:  # such as a compiler that is missing
            setup.told.append(f"{label}: {type(error).__name__}: {error}"[:500])


def of_run(setup: Setup) -> Iterator[Record]:
    """One run of VTAB's size by part, in both precisions and compiled, and several side by side."""
    counts, epochs = ((20, 8, 12), 4) if setup.tiny else ((800, 200, 2000), 6)
    network, size = (MICRO, 24) if setup.tiny else (bench.BASE, 224)
    chosen = {"what": "whole run", "name": "whole-run", "machine": machine(setup.device)}
    chosen |= {"device": setup.device, "backbone": network, "pictures": list(counts)}
    chosen |= {"batch_size": card_run.BATCH, "repeats": 1}

    def compute():
        with tempfile.TemporaryDirectory() as name:
            os.environ["VISPROMPT_CACHE"] = f"{name}/cache"
            card_run.write_pictures(Path(name, "data"), counts)
            load = partial(load_task, card_run.NAME, f"{name}/data", image_size=size)
            small = partial(load_task, card_run.NAME, f"{name}/data", image_size=24)
            recipe = partial(Recipe, epochs=epochs, batch_size=card_run.BATCH, learning_rate=1e-3)
            # so that the watch sees what runs
            card_run.run_by_part(small, MICRO, recipe(), setup.device)
            with unwatched():
                return dict(of_ways(setup, load, network, recipe))

    yield recorded("bench", chosen, compute, run="again")


def of_ways(setup: Setup, load: Callable, network: str, recipe: Callable) -> Iterator[tuple]:
    """(name, values) of what is measured on one run, while there is time."""
    device, run = setup.device, partial(card_run.run_by_part, load, network)
    ways = {
        "bf16": {"precision": "bf16"},
        "float32": {},
        "bf16, side by side": [1, 2, 3],
        "step": {
            "bf16": {"precision": "bf16"},
            "bf16, one graph": {"precision": "bf16", "graph": True},
            "bf16, compiled": {"precision": "bf16", "compile": "default"},
            "bf16, compiled, reduced overhead": {"precision": "bf16", "compile": "reduce-overhead"},
        },
        "bf16 and compiled": {"precision": "bf16", "compile": True},
    }
    if setup.tiny:
        ways.pop("bf16 and compiled")
        ways["step"] = {"bf16": {"precision": "bf16", "batch": 2}}
    for name, how in ways.items():
        if setup.left() < 0:
            setup.told.append(f"{name}: no time was left")
            continue
        try:
            if name == "step":
                yield name, card_run.steps_by_way(network, device, how, 1 if setup.tiny else 20)
            elif isinstance(how, list):
                counts = how[:2] if setup.tiny else how
                slow = recipe(precision="bf16")
                yield name, card_run.processes(load, network, slow, device, counts)
            else:
                yield name, run(recipe(**how), device, 2 if name == "bf16" else 0)
        except Exception as error:
            setup.told.append(f"{name}: {type(error).__name__}: {error}"[:500])


def of_photographs(setup: Setup) -> Iterator[Record]:
    """Kept runs on photographs, done again on the card."""
    few = 1 if setup.tiny else None
    given = (setup.folder, setup.device, setup.workers, setup.left(), few)
    for record in card_fits.photographs(*given):
        for method, found in record.values.items():
            setup.told += [f"{method}, {name}: {why}" for name, why in found["failed"].items()]
        yield record


def of_ap_tables(setup: Setup) -> Iterator[Record]:
    """What the pages on AP's costs time."""
    if setup.tiny:
        slugs = {"ap": {}, "linear-probe": {}}
        given = dict(batch_size=2, repeats=1, device=setup.device)
        yield ap_tables.speeds_in_turns(MICRO, slugs, **given)
        return
    yield from each(setup, ap_tables.everything(setup.device))


def of_loaders(setup: Setup) -> Iterator[Record]:
    """Original pictures decoded and cropped, by threads."""
    counts, size = ((40, 8, 8), 64) if setup.tiny else ((800, 8, 8), 500)
    chosen = {"what": "loaders", "name": "loaders", "machine": machine("cpu"), "device": "cpu"}
    chosen |= {"pictures": counts[0], "size": size, "repeats": 1}
    threads = [1, 2] if setup.tiny else [1, 2, 4, 8, 16]

    def compute():
        with tempfile.TemporaryDirectory() as name:
            os.environ["VISPROMPT_CACHE"] = "none"
            card_run.write_pictures(Path(name), counts, size)
            card_run.loaders(Path(name), 224, [1], 8)
            with unwatched():
                return card_run.loaders(Path(name), 224, threads, counts[0])

    yield recorded("bench", chosen, compute, run="again")


MAKERS = {
    "methods": of_methods,
    "bench": of_bench,
    "run": of_run,
    "photographs": of_photographs,
    "ap-tables": of_ap_tables,
    "loaders": of_loaders,
}


class OutOfTime(Exception):
    """The seconds of a part are over."""


def stop(number, frame) -> None:
    """What the alarm and `timeout` call: what runs ends, and what was found is written."""
    raise OutOfTime("its time is over")


def do(part: str, seconds: float, setup: Setup, out: Path) -> bool:
    """Do one part and leave its file, after every record and at the end; whether nothing failed."""
    start, found, error = time.monotonic(), [], ""
    setup.end, setup.told = start + seconds, []
    before = {n: signal.signal(n, stop) for n in (signal.SIGALRM, signal.SIGTERM)}
    try:
        signal.alarm(max(1, round(seconds) + 5))
        for record in MAKERS[part](setup):
            found.append(record)
            leave(part, setup, found, start, out)
    except Exception:
        error = traceback.format_exc()[-3000:]
    signal.alarm(0)
    for number, handler in before.items():
        signal.signal(number, handler)
    leave(part, setup, found, start, out, error)
    took = time.monotonic() - start
    print(f"{part}: {len(found)} records in {took:.0f} s", *setup.told, error, sep="\n  ")
    return not error


def leave(part, setup, found, start, out, error="") -> None:
    """Write a part's file, and all records so far."""
    kept = {
        "part": part,
        "seconds": round(time.monotonic() - start, 1),
        "commit": records.commit(),
        "hardware": records.hardware(),
        "versions": records.versions(),
        "told": setup.told,
        "error": error,
        "records": [
            {"id": r.id, "kind": r.kind, "settings": r.settings, "values": r.values} for r in found
        ],
    }
    if part == "bench" and found:
        kept["rows"] = rows(found).to_dict("records")
    records.write_whole(out / f"{part}.json", json.dumps(kept, indent=1))
    pack(out)


def pack(out: Path) -> None:
    """All records of the last day, as one file; unpacked it is what `visprompt merge` takes."""
    store, place = records.stores()[0], out / "records.tgz"
    part = place.with_suffix(f".part{os.getpid()}")
    with tarfile.open(part, mode="w:gz") as archive:
        for path in sorted(store.rglob("*.json")):
            if path.stat().st_mtime > time.time() - 86_400 and "failed" not in path.parts:
                archive.add(path, path.relative_to(store))
    part.replace(place)


def main(words: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda")
    parser.add_argument(
        "--parts", nargs="+", default=[*PARTS], help="each a name, or a name and seconds: run=130"
    )
    parser.add_argument("--folder", type=Path, default=os.environ.get("VISPROMPT_CARD", ".card"))
    parser.add_argument("--out", type=Path, default=os.environ.get("OUT") or ROOT / "build/card")
    parser.add_argument("--workers", type=int, default=max(1, min(8, (os.cpu_count() or 1) // 2)))
    parser.add_argument("--tiny", action="store_true", help="small in every way, to try the parts")
    args = parser.parse_args(words)
    setup = Setup(args.device, Path(args.folder), args.workers, args.tiny)
    good = True
    for word in args.parts:
        part, _, seconds = word.partition("=")
        choose("part", part, PARTS)
        good &= do(part, float(seconds or PARTS[part]), setup, Path(args.out))
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
