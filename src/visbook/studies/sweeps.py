"""Many runs as one table, and what may be said of it."""

import os
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import pandas as pd

from visprompt.errors import BadInput
from visprompt.records import Record, run_all

from . import rates
from .case import Run, Usual, rate_name
from .lab import Lab, LabSettings


def sweep(
    runs: Sequence[Run], bench: LabSettings | Lab, label: str, kept: Sequence[Run] = ()
) -> pd.DataFrame:
    """Do the runs that have no record yet and return one row a run.

    Args:
        kept: runs that are shown where a record exists and are not done otherwise.

    Returns:
        Columns backbone, task, method, seed, train_size, test and val (percent), parameters
        (method's own), fit_seconds, rate (learning rate), record (the `Record`), run (the `Run`)
        and one column per method setting that occurs.

    Raises:
        BadInput: no run was asked for, or, after all runs, some failed.
    """
    lab = bench if isinstance(bench, Lab) else Lab(bench)
    turns = begun_elsewhere(list(enumerate(runs)))
    last = {name: number for number, run in turns for name in (run.task, run.prepared_on)}

    def do(number: int, run: Run) -> Record:
        try:
            return lab.do(run)
        finally:
            for name in {run.task, run.prepared_on} - {None}:
                if last[name] == number:
                    lab.leave(name)

    done = run_all(
        [(run.label, lambda number=number, run=run: do(number, run)) for number, run in turns],
        label,
    )
    done = [
        (run, record)
        for (_, run), record in sorted(zip(turns, done, strict=True), key=lambda pair: pair[0][0])
    ]
    found = [*done, *((run, lab.do(run, compute=False)) for run in kept)]
    rows = [row_of(run, record) for run, record in found if record is not None]
    if not rows:
        raise BadInput("no run was asked for: give at least one backbone, task, method and seed.")
    return pd.DataFrame(rows)


def begun_elsewhere(runs: list) -> list:
    """The runs in an order that starts elsewhere in each process, so that two processes with the
    same runs find each other's records."""
    first = os.getpid() * 37 % max(1, len(runs))
    return runs[first:] + runs[:first]


def row_of(run: Run, record: Record) -> dict:
    """A row of `sweep`."""
    names = ("test", "val", "fit_seconds", "test_many", "constant")  # the last two: of masks
    values = {name: record.values[name] for name in names if name in record.values}
    if "trained_on" in record.about:
        values["val"] = float("nan")  # it was trained on
    return {
        "backbone": run.backbone,
        "task": run.task,
        "method": run.method,
        "seed": run.seed,
        "train_size": record.settings["train_size"],
        **values,
        "parameters": record.values["parameters"]["method"],
        "rate": record.settings["recipe"][rate_name(run.method)],
        "record": record,
        "run": run,
        **run.settings,
        **{
            name: record.settings["method_settings"][name]
            for name, n in run.settings.items()
            if isinstance(n, Usual)
        },
    }


def at_best_rates(runs: Sequence[Run], lab: Lab, compute: bool, label: str = "search") -> list[Run]:
    """The runs at the learning rate that a search with seed 0 chose on validation.

    Each cell, a backbone, a task and a method with its settings, has a search of its own. The best
    try wins, the first of equals. Where it is the largest or the smallest of its rates, a search
    that goes outward tries the next: see `rates.further`. A search of one rate needs no run. Test
    accuracy chooses nothing.

    Args:
        compute: False takes only what is on disk; a cell whose first tries are not whole keeps the
            recipe's rate.
    """
    cells = {repr(replace(run, seed=0)): replace(run, seed=0) for run in runs}
    first = {name: lab.trials(cell) for name, cell in cells.items()}
    best = {name: trials[0] for name, trials in first.items() if len(trials) == 1}
    asked = {name: trials for name, trials in first.items() if name not in best}
    grid = lab.protocol.search(lab.bench.search) if asked else {}
    while asked:
        if compute:
            every = [
                (
                    f"{run.label}, rate {run.rate:g}",
                    partial(tried, run, lab, place < len(first[name])),
                )
                for name, trials in asked.items()
                for place, run in enumerate(trials)
            ]
            run_all(begun_elsewhere(every), label)
        going = {}
        for name, trials in asked.items():
            found = [(run, lab.do(run, compute=False)) for run in trials]
            if all(record for _, record in found[: len(first[name])]):
                best[name], more = taken(found, grid)
                going |= {name: [*trials, more]} if more else {}
        asked = going
    chosen = [(run, best.get(repr(replace(run, seed=0)), run)) for run in runs]
    return [replace(run, rate=like.rate, changes=like.changes) for run, like in chosen]


def tried(run: Run, lab: Lab, first: bool) -> Record | None:
    """The record of a try; None where one that a search went on with diverged."""
    try:
        return lab.do(run)
    except FloatingPointError:
        if first:
            raise
        return None


def taken(found: Sequence[tuple[Run, Record | None]], grid: dict) -> tuple[Run, Run | None]:
    """The try that a search takes, and the one that it goes on with.

    Args:
        found: the tries, the preferred of equals first; without a record those that diverged or
            were not run.
        grid: the recipe's search.
    """
    done = [(run, record) for run, record in found if record]
    best, _ = max(done, key=lambda pair: pair[1].values["val"])
    if "outward" not in grid:
        return best, None
    rates_tried = [run.rate for run, _ in found]
    more = rates.further(rates_tried, best.rate, rates_tried[0], *grid["outward"])
    return best, more and replace(best, rate=more)
