"""Planned runs, done by a lab: the searches first, then every cell with all its seeds."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import pandas as pd

from visprompt.errors import BadInput

from .case import Run
from .grids import Scope, at_searched_rate, share
from .lab import Lab
from .plan import Cell, Planned, artifact, cells_of, command, groups, told
from .sweeps import at_best_rates, sweep


def ready(run: Planned, lab: Lab) -> Run:
    """A planned run as `Lab.do` takes it, at the rate that its search gave; the recipe's where the
    search is not whole."""
    return at_rate_of(run.run, run.like, lab)


def at_rate_of(run: Run, like: Run | None, lab: Lab) -> Run:
    """A run at the rate that the search of another gave; as it is where there is none."""
    return run if like is None else at_searched_rate(run, like, lab)


def do(found: Sequence[Cell], lab: Lab, label: str) -> pd.DataFrame:
    """Do the runs of cells that have no record yet, searches first, and return a row for every cell
    and seed.

    Returns:
        The columns of `sweeps.sweep`, "variant" and "group".

    Raises:
        BadInput: runs failed.
    """
    searched = {repr(cell.like or cell.run): cell.like or cell.run for cell in found if cell.grid}
    at_best_rates(list(searched.values()), lab, True, f"search of {label}")
    rated = [
        (cell, at_rate_of(cell.run, (cell.like or cell.run) if cell.grid else None, lab))
        for cell in found
    ]
    wanted = [(cell.variant, replace(run, seed=seed)) for cell, run in rated for seed in cell.seeds]
    frame = sweep([run for _, run in wanted], lab, label)
    return frame.assign(variant=[variant for variant, _ in wanted], group=frame.task.map(groups()))


def of_artifact(
    id: str, scope: Scope, lab: Callable[[str], Lab], *, seeds: Sequence[int] | None, part: str
) -> pd.DataFrame:
    """Do the runs of an artifact; see `do`.

    Args:
        lab: gives the lab of a recipe.
        seeds: in place of those of its paper.
        part: "2/3" takes the second of every three cells.

    Raises:
        BadInput: unknown artifact, one that no run makes, an impossible part, or runs that failed.
    """
    number, parts = share(part)
    found = cells_of(id, scope=scope)
    if not found:
        why = (
            f"{scope.profile} has none of it"
            if artifact(id).studies
            else f"it is made by {told(artifact(id))}"
        )
        raise BadInput(f"nothing to run of {id}: {why}; give {command(id, scope.profile)}.")
    mine = [
        cell if seeds is None else replace(cell, seeds=tuple(seeds))
        for cell in found[number - 1 :: parts]
    ]
    return do(mine, lab(mine[0].recipe), id) if mine else pd.DataFrame()
