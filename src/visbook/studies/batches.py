"""The runs of a plan as jobs for many machines: cut to a useful length, a search before what takes
its rate.

A job is a papermill run of notebooks/batch.py. `visprompt batches` writes the list that the
Snakefile's rule `sweep` goes through; the notebooks of the book then find the records that the jobs
left.
"""

import json
import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path

import pandas as pd

from visprompt.errors import BadInput, choose
from visprompt.papers import papers
from visprompt.records import run_all
from visprompt.records.store import write_whole

from .artifact_runs import ready
from .budget import there
from .case import Run
from .grids import scope_of
from .lab import Lab, LabSettings
from .plan import Planned, artifacts, cells_of, runs_of
from .sweeps import row_of
from .weights import named_files

# interpreter, imports, one checkpoint and one data set: what a job costs before its first run
SETUP_MINUTES = 0.25
NOTEBOOK = "batch"


@dataclass(frozen=True)
class Job:
    """Some runs, done one after the other on one machine. Its name follows from them, so a job that
    is done stays done."""

    runs: tuple[Planned, ...]
    minutes: float
    after: tuple[str, ...] = ()  # names of jobs whose searches give rates to these runs

    @property
    def name(self) -> str:
        """Says what the first run is, and tells any two jobs apart."""
        first = self.runs[0].run
        ids = " ".join(run_id(run) for run in self.runs)
        return f"{first.method}-{first.task}-{sha256(ids.encode()).hexdigest()[:10]}"


def run_id(run: Planned) -> str:
    """A short name of a planned run, the same on every machine."""
    return sha256(repr(run.key).encode()).hexdigest()[:12]


def cell_of(run: Planned) -> tuple[str, str]:
    """The recipe and cell whose search a run belongs to, or waits for."""
    return run.recipe, repr(
        run.like or replace(run.run, seed=0, rate=None, changes={}, trial=False)
    )


def batches(
    runs: Iterable[Planned], minutes: Callable[[Planned], float], bound: float = 30.0
) -> list[Job]:
    """Jobs of at most `bound` minutes each, but for a run that is longer by itself; the longest
    first.

    Runs on one backbone and task stay together, so that both are loaded once.

    Args:
        minutes: how long a run will take.

    Raises:
        BadInput: a bound that is no positive number.
    """
    if not 0 < bound < math.inf:
        raise BadInput(
            f"the bound of a job is in minutes, above 0, not {bound}; write such as --minutes 30."
        )
    cells = defaultdict(list)
    for run in runs:
        cells[cell_of(run)].append(run)
    jobs, loose = [], []
    for found in cells.values():
        search = [run for run in found if run.stage == "search"]
        others = [run for run in found if run.stage != "search"]
        first, rest = cut(search, minutes, bound), cut(others, minutes, bound)
        if len(first) == 1:  # what waits for the search is done behind it, as far as it fits
            first, rest = (whole := cut(search + others, minutes, bound))[:1], whole[1:]
        if not rest and len(first) == 1:
            loose += first
            continue
        before = [job(piece, minutes) for piece in first]
        needed = tuple(one.name for one in before) if search else ()
        jobs += [*before, *(job(piece, minutes, needed) for piece in rest if piece)]
    jobs += [job(piece, minutes) for piece in packed(loose, minutes, bound)]
    return sorted(jobs, key=lambda job: (-job.minutes, job.name))


def job(
    runs: Sequence[Planned], minutes: Callable[[Planned], float], after: tuple[str, ...] = ()
) -> Job:
    """A job of some runs."""
    return Job(tuple(runs), round(SETUP_MINUTES + sum(map(minutes, runs)), 2), after)


def cut(
    runs: Sequence[Planned], minutes: Callable[[Planned], float], bound: float
) -> list[list[Planned]]:
    """Runs of one cell in pieces of at most `bound` minutes, but for a run that is longer."""
    pieces, used = [[]], SETUP_MINUTES
    for run in runs:
        took = minutes(run)
        if pieces[-1] and used + took > bound:
            pieces.append([])
            used = SETUP_MINUTES
        pieces[-1].append(run)
        used += took
    return pieces


def packed(
    pieces: Sequence[list[Planned]], minutes: Callable[[Planned], float], bound: float
) -> list[list[Planned]]:
    """Small pieces put together up to `bound` minutes, neighbours in backbone and task first; one
    recipe a job."""

    def place(piece):
        first = piece[0]
        return first.recipe, first.run.backbone, first.run.task, -sum(map(minutes, piece))

    full, used, recipe = [], math.inf, None
    for piece in sorted(pieces, key=place):
        took = sum(map(minutes, piece))
        if used + took > bound or piece[0].recipe != recipe:
            full.append([])
            used, recipe = SETUP_MINUTES, piece[0].recipe
        full[-1] += piece
        used += took
    return full


def write_jobs(jobs: Sequence[Job], path: str | Path, **parameters) -> None:
    """Write the list that the rule `sweep` reads, whole or not at all.

    Args:
        parameters: of notebooks/batch.py, the same for every job, such as `profile` and
            `artifacts`.
    """
    listed = [
        {
            "name": job.name,
            "notebook": NOTEBOOK,
            "parameters": {**parameters, "runs": [run_id(run) for run in job.runs]},
            "minutes": job.minutes,
            "after": list(job.after),
        }
        for job in jobs
    ]
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    write_whole(Path(path), json.dumps({"jobs": listed}, indent=1))


def planned_runs(
    ids: Sequence[str] | None,
    profile: str,
    data_dir: str | Path | None = None,
    seeds: Sequence[int] | None = None,
    **narrowed,
) -> list[Planned]:
    """The runs of some artifacts, or of all, each once.

    Args:
        ids: artifacts, or papers for all of theirs; none: all.
        data_dir: a folder of data sets; only what is there is planned.
        seeds: in place of those of the papers.
        narrowed: `backbone`, `tasks` and `methods`, see `grids.scope_of`.

    Raises:
        BadInput: an unknown artifact or profile, or a folder that is not there.
    """
    scope = there(scope_of(profile, **narrowed), data_dir)
    named = [id for word in ids or artifacts() for id in artifacts_of(word)]
    cells = [cell for id in named for cell in cells_of(id, scope=scope)]
    if seeds is not None:
        cells = [replace(cell, seeds=tuple(seeds)) for cell in cells]
    return runs_of(cells)


def artifacts_of(word: str) -> list[str]:
    """The artifacts of a paper; an artifact is its own."""
    return [id for id in artifacts() if id.startswith(f"{word}.")] if word in papers() else [word]


def check_weights(runs: Iterable[Planned], weights: str | Sequence[str]) -> None:
    """Check that the files of weights are there, before any job is.

    Raises:
        BadInput: a file is not there, or one without a name would serve several backbones.
    """
    if named_files(weights) is not None or weights == "pretrained":
        return
    names = sorted({run.run.backbone for run in runs if not run.run.scratch})
    if len(names) > 1:
        named = " ".join(f"{name}=FILE" for name in names)
        raise BadInput(f"one file of weights is given for {len(names)} backbones; give {named}.")
    if not Path(weights).is_file():
        raise BadInput(f"weights {weights}: there is no such file.")


def chosen(runs: Sequence[Planned], ids: Sequence[str] | None) -> list[Planned]:
    """Those of some runs that are named, in the order given; all where none is.

    Raises:
        BadInput: a name that none of them has.
    """
    known = {run_id(run): run for run in runs}
    return (
        list(runs) if ids is None else [known[choose("run of the plan", id, known)] for id in ids]
    )


def do(runs: Sequence[Planned], **bench) -> pd.DataFrame:
    """Do runs of one profile, each that has no record yet; one that fails does not stop the others.

    Args:
        bench: fields of `lab.LabSettings` beside the recipe.

    Returns:
        A row a run, as of `sweeps.sweep`, with the run's id.

    Raises:
        BadInput: after the last run, when any failed.
    """
    labs = {recipe: Lab(LabSettings(recipe, **bench)) for recipe in {run.recipe for run in runs}}
    named = [
        (run.run.label, lambda run=run: labs[run.recipe].do(at_rate(run, labs[run.recipe])))
        for run in runs
    ]
    records = run_all(named, "batch")
    return pd.DataFrame(
        [
            {**row_of(run.run, record), "id": run_id(run)}
            for run, record in zip(runs, records, strict=True)
        ]
    )


def at_rate(run: Planned, lab: Lab) -> Run:
    """A planned run at its rate.

    Raises:
        BadInput: its search is not whole, so that nobody knows the rate yet.
    """
    found = ready(run, lab)
    if run.like is not None and found.rate is None:
        raise BadInput(
            f"{run.run.label}: the search for its rate is not whole; run that of "
            f"{run.like.label} first."
        )
    return found
