"""Figures 5 and 8 of the shallow ViT: tokens removed before training and testing."""

from collections.abc import Sequence

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from ..studies.statistics import interval
from .shallow_runs import BLUE, COUNTS, GREY, RED, Job, Runs, scan, size

DROPS = [0.0, 0.1, 0.2, 0.7]  # with alpha* = 0.3 the last one leaves label-relevant tokens only
LOUD = [0.0, 0.25, 0.5]
SHORT = {"relevant": 0.3, "confusion": 0.1, "max_steps": 250, "run_on": True, "check_growth": 2.0}


def jobs() -> dict[str, Job]:
    """The runs of the page, by name."""
    kinds = [{"drop": d} for d in DROPS]
    kinds += [{"noisy": 0.5, "drop": d, "drop_what": "noisy"} for d in LOUD]
    kinds += [{"noisy": 0.5, "drop": d, "drop_what": "any"} for d in LOUD[1:]]
    return {f"prune {m}": scan(kinds, **size(m), **SHORT) for m in COUNTS}


def losses(runs: Runs, m: int) -> tuple[list, list, list]:
    """Test losses (trials,) of the cells of one M: label-irrelevant, noisy and any tokens
    dropped."""
    cells = [np.array([t["loss"] for t in cell]) for cell in runs.cells(f"prune {m}")]
    noisy, anything = cells[len(DROPS) :][: len(LOUD)], cells[len(DROPS) + len(LOUD) :]
    return cells[: len(DROPS)], noisy, [noisy[0], *anything]


def pruning(left: plt.Axes, right: plt.Axes, runs: Runs, m: int) -> None:
    """Test loss of one M against the share removed: irrelevant tokens on the left, noisy or any on
    the right."""
    irrelevant, noisy, anything = losses(runs, m)
    for axis, xs, cells, colour, name in (
        (left, DROPS, irrelevant, BLUE, "label-irrelevant"),
        (right, LOUD, noisy, RED, "noisy"),
        (right, LOUD, anything, GREY, "any (control)"),
    ):
        found = np.array([interval(values) for values in cells])
        axis.plot(xs, found[:, 0], "o-", color=colour, label=name)
        axis.fill_between(xs, found[:, 1], found[:, 2], color=colour, alpha=0.2)
        axis.set_ylim(0, None)


def five_patterns(runs: Runs) -> Figure:
    """Figure 5."""
    fig, (left, right) = plt.subplots(1, 2, figsize=(7.2, 3.5), sharey=True)
    pruning(left, right, runs, 5)
    left.set(ylabel="test hinge loss", xlabel="share of tokens removed")
    right.set(xlabel="share of tokens removed")
    left.set_title("Fewer irrelevant tokens, no loss")
    right.set_title("Noisy tokens matter most")
    for axis in (left, right):
        axis.legend(title="removed", loc="upper right")
    return fig


def more_patterns(runs: Runs) -> Figure:
    """Figure 8."""
    fig, axes = plt.subplots(2, 3, figsize=(7.4, 5), sharey="row")
    for column, m in zip(axes.T, COUNTS[1:]):
        pruning(*column, runs, m)
        column[0].set_title(f"M = {m}")
        column[1].set_xlabel("share removed")
    for row, place in zip(axes, ("upper right", "lower left"), strict=True):
        row[0].set_ylabel("test hinge loss")
        row[0].legend(title="removed", fontsize=8, title_fontsize=8, loc=place, borderpad=0.2)
    fig.suptitle("For every M the loss falls as irrelevant or noisy tokens are removed")
    return fig


def judge_pruning(runs: Runs, artifact: str, counts: Sequence[int]) -> None:
    """The gain from removing everything irrelevant, and the noisy half beyond as many of any; the
    smallest over M."""
    records, found = [f"prune {m}" for m in counts], [losses(runs, m) for m in counts]
    gains = [interval(irrelevant[0] - irrelevant[-1]) for irrelevant, _, _ in found]
    note = f"The loss without pruning is {found[0][0][0].mean():.2f}."
    runs.judge(f"{artifact}.irrelevant-removed", min(gains), *records, note=note)
    beyond = [interval(anything[-1] - noisy[-1]) for _, noisy, anything in found]
    least = min(interval(noisy[0] - noisy[-1]) for _, noisy, _ in found)
    note = (
        "Compared with no pruning at all, the gain is {:.2f} [{:.2f}, {:.2f}]; removing any tokens "
        "helps too."
    ).format(*least)
    runs.judge(f"{artifact}.noisy-removed", min(beyond), *records, note=note)
