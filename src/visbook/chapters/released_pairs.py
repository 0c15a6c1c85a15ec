"""What each difference between released code and its paper moves, from paired runs on the small
world."""

import html

import pandas as pd

from visprompt import paths
from visprompt.manifests import load_yaml
from visprompt.methods import names

from ..pages.friendly import signed
from ..studies import grids, statistics
from ..studies.lab import Lab, LabSettings
from ..studies.roles import recipe_scope

STUDY, SEEDS = "released-pairs", range(5)


def frame() -> pd.DataFrame:
    """The runs of the study that have records."""
    return grids.study(
        STUDY, recipe_scope("quick", "quick"), Lab(LabSettings()), kept_seeds=list(SEEDS)
    )


def rows(found: pd.DataFrame) -> list[list[str]]:
    """(method, what, points moved, their interval, seeds) of every option that has runs, the
    largest move first."""
    moved = []
    for slug, entries in load_yaml(paths.MANIFESTS / "differences.yaml").items():
        for entry in entries:
            if "option" in entry:
                told = [html.escape(names()[slug]), html.escape(entry["what"])]
                off, on = grids.pair(slug, entry)
                if got := statistics.gain(found, on, off):
                    moved.append((told, got))
    moved.sort(key=lambda one: -abs(one[1].mean))
    return [told + cells(got) for told, got in moved]


def options() -> int:
    """How many differences have an option."""
    differences = load_yaml(paths.MANIFESTS / "differences.yaml").values()
    return sum("option" in entry for entries in differences for entry in entries)


def cells(got: statistics.Gain) -> list[str]:
    """Points, interval and seeds as text."""
    mean, low, high = got.here
    wide = f"{signed(low)} to {signed(high)}" if got.seeds > 1 else "–"
    return [signed(mean), wide, str(got.seeds)]
