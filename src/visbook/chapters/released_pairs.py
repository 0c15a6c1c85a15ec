"""What each difference between released code and its paper moves, from paired runs on the small
world."""

import html

import pandas as pd

from visprompt import paths
from visprompt.errors import BadInput
from visprompt.manifests import load_yaml
from visprompt.methods import names
from visprompt.words import NOT_RUN

from ..studies import grids, statistics
from ..studies.lab import Lab, LabSettings
from ..studies.roles import cast_for

STUDY, SEEDS = "released-pairs", range(5)


def frame() -> pd.DataFrame:
    """The runs of the study that have records."""
    return grids.study(
        STUDY, cast_for("quick", "quick"), Lab(LabSettings()), kept_seeds=list(SEEDS)
    )


def rows(found: pd.DataFrame) -> list[list[str]]:
    """(method, what, points moved, their interval, seeds) of every option, the largest move first;
    those without runs are last."""
    moved = []
    for slug, entries in load_yaml(paths.MANIFESTS / "differences.yaml").items():
        for entry in entries:
            if "option" in entry:
                told = [html.escape(names()[slug]), html.escape(entry["what"])]
                moved.append((told, gain(found, *grids.pair(slug, entry))))
    moved.sort(key=lambda one: -abs(one[1].here[0]) if one[1] else 1)
    return [told + cells(got) for told, got in moved]


def gain(found: pd.DataFrame, off: str, on: str) -> statistics.Gain | None:
    """What an option moves, paired by seed; None where no seed has both runs."""
    try:
        return statistics.gain(found, on, off) if len(found) else None
    except BadInput:
        return None


def cells(got: statistics.Gain | None) -> list[str]:
    """Points, interval and seeds as text."""
    if got is None:
        return [NOT_RUN, "–", "0"]
    mean, low, high = got.here
    points = f"{mean:+.1f}".replace("-", "−")
    wide = f"{low:+.1f} to {high:+.1f}".replace("-", "−") if got.seeds > 1 else "–"
    return [points, wide, str(got.seeds)]
