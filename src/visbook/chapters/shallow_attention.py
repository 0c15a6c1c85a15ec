"""Proposition 2, Figures 4 and 7 and Appendix G of the shallow ViT: attention over training."""

from collections.abc import Sequence

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from visprompt.records import Record, recorded

from ..pages.plots import at_end, log_axes
from ..theory import shallow_measures, shallow_training, shallow_vit
from .shallow_model import PRINTED
from .shallow_runs import (
    BLUE,
    COUNTS,
    GREEN,
    ORANGE,
    RED,
    Job,
    Runs,
    TrialParameters,
    of_four,
    scan,
    size,
)

ROOT = {"start": "root", "step": 0.01}
MAP = {
    "samples": 200,
    "run_on": True,
    "max_steps": 400,
    "keep": ["step", "attention", "from_relevant", "from_rest"],
}
EXTENSIONS = {  # of Appendix G
    "two classes, one head": {},
    "four classes (G.1)": {"classes": 4},
    "sets of three vectors, 0.7 wide (G.2)": {"members": 3},
    "four heads (G.3)": {"heads": 4},
    "skip connection (G.4)": {"skip": True},
}
base = shallow_vit.Settings()  # the setting of Figure 4
# eta, each trained for as long as a step of 0.5 is in 400 iterations
STEPS = [0.25, 0.5, 1.0]
SMALL_STEPS = [0.05, 0.1]  # at 1 any power of it is 1
READ = (
    ("map 5", BLUE, "judged: Assumption 1,\nown $a_{(l)}$"),
    ("map shared", GREEN, "one $a$ for\nall positions"),
    ("map root", ORANGE, "without squares"),
    ("map printed", RED, "initialised as printed"),
)


def jobs() -> dict[str, Job]:
    """The runs of the page, by name."""
    return {
        **{f"map {m}": scan([size(m)], watch="by_query", **MAP) for m in COUNTS},
        "map shared": scan([{}], watch="by_query", output="shared", **MAP),
        "map printed": scan([{}], watch="by_query", **MAP, **PRINTED),
        "steps": ending(STEPS),
        "small steps": of_four(ending(SMALL_STEPS, neurons=1000)),
        "kept": magnitude,
        "extensions": scan(
            [{"patterns": 7, "dim": 14, **x} for x in EXTENSIONS.values()],
            max_steps=2000,
            keep=["attention"],
        ),
        "map root": scan([{}], watch="by_query", **MAP, **ROOT),
    }


def ending(steps: Sequence[float], **more) -> Job:
    """The job of Figure 4's setting at some step sizes."""
    cells = [{"step": e, "max_steps": round(200 / e)} for e in steps]
    return scan(cells, samples=200, run_on=True, keep=["attention"], **more)


def magnitude(p: TrialParameters, run: bool = True) -> Record | None:
    """Tokens kept by the attention that they get, in the setting of Figure 4, at every look."""
    s = shallow_vit.Settings(output="own", neurons=p.neurons, samples=200, run_on=True)

    def compute():
        found = shallow_training.run_trials(
            [(s, seed) for seed in p.seeds], device=p.device, watch=shallow_measures.by_magnitude
        )
        return {"cells": [found]}

    return recorded("shallow-kept", {"cells": [s], "seeds": p.seeds}, compute, run=run)


def extensions_table(runs: Runs) -> pd.DataFrame:
    """Appendix G: successes, iterations and attention for each extension."""
    table = []
    for name, trials in zip(EXTENSIONS, runs.cells("extensions")):
        begin, end = np.mean(
            [(t["trace"]["attention"][0], t["trace"]["attention"][-1]) for t in trials], 0
        )
        found = shallow_measures.needed([t["steps"] for t in trials])
        table.append(
            {
                "model": name,
                "successes": f"{sum(t['steps'] is not None for t in trials)} of {len(trials)}",
                "median iterations": "over cap" if np.isinf(found) else f"{found:,.0f}",
                "attention on relevant tokens": f"{begin:.2f} to {end:.2f}",
            }
        )
    return pd.DataFrame(table).set_index("model")


def extended(runs: Runs) -> tuple[list[int], list[np.ndarray]]:
    """For each extension of Appendix G: how many trials succeed, and the rise of the attention, one
    a trial."""
    cells = runs.cells("extensions")[1:]
    done = [sum(trial["steps"] is not None for trial in trials) for trials in cells]
    rises = [
        np.array([t["trace"]["attention"][-1] - t["trace"]["attention"][0] for t in trials])
        for trials in cells
    ]
    return done, rises


def kept_table(runs: Runs) -> pd.DataFrame:
    """What is kept when half of the tokens go, by attention or at random, before and after
    training."""
    rows = []
    for name, look in (("at the start", 0), ("after training", -1)):
        found = {
            field: runs.traces("kept", field)[:, look].mean() for field in shallow_measures.KEPT
        }
        share = f"{100 * found['kept_relevant']:.0f} %"
        rows.append(
            (
                name,
                share,
                *(f"{found[field]:.3f}" for field in ("loss", "kept_loss", "random_loss")),
            )
        )
    names = [
        "",
        "label-relevant among the kept",
        "loss with all tokens",
        "with those of most attention",
        "with random ones",
    ]
    return pd.DataFrame(rows, columns=names).set_index("")


class Attention:
    """Attention on label-relevant tokens in the setting of Figure 4: at the looks, and up to each
    trial's success."""

    def __init__(self, runs: Runs):
        self.runs, self.looks = runs, runs.traces("map 5", "step")[0]
        self.relevant = runs.traces("map 5", "attention")
        self.ends = [steps or self.looks[-1] for steps in runs.steps("map 5", 0)]

    def rise(self, name: str) -> np.ndarray:
        """Attention on label-relevant tokens after training minus at the start, one a trial."""
        values = self.runs.traces(name, "attention")
        return values[:, -1] - values[:, 0]

    def end(self, name: str) -> np.ndarray:
        """The same after training."""
        return self.runs.traces(name, "attention")[:, -1]

    def lowest(self) -> np.ndarray:
        """The smaller of what label-relevant and non-discriminative queries pay after training, one
        a trial."""
        return np.minimum(
            *(self.runs.traces("map 5", name)[:, -1] for name in ("from_relevant", "from_rest"))
        )

    def random_over_kept(self) -> np.ndarray:
        """Test loss with random tokens minus that with those of most attention, after training, one
        a trial."""
        random, kept = (
            self.runs.traces("kept", f"{which}_loss")[:, -1] for which in ("random", "kept")
        )
        return random - kept

    def rising(self) -> list[float]:
        """Share of the steps between looks, up to success, at which it does not fall, %; one a
        trial."""
        return [
            100 * np.mean(np.diff(v[self.looks <= end]) >= 0)
            for v, end in zip(self.relevant, self.ends)
        ]

    def rates(self, line: bool = False) -> list[float]:
        """Slope of the logarithm of the distance from its last value against that of t, one a
        trial, over the second half of the steps up to success.

        Args:
            line: of a straight line up to success in the place of what was seen.
        """
        found = []
        for values, end in zip(self.relevant, self.ends):
            values = np.minimum(self.looks, end) if line else values
            left = values[-1] - values
            late = (self.looks <= end) & (self.looks >= end / 2) & (self.looks > 0) & (left > 0)
            found.append(np.polyfit(np.log(self.looks[late]), np.log(left[late]), 1)[0])
        return found

    def last(self) -> dict[float, list[float]]:
        """Attention on other tokens after training by eta, one a trial."""
        cells = [*self.runs.cells("small steps"), *self.runs.cells("steps")]
        return {
            eta: [1 - trial["trace"]["attention"][-1] for trial in trials]
            for eta, trials in zip([*SMALL_STEPS, *STEPS], cells, strict=True)
        }

    def left(self) -> dict[float, float]:
        """Attention on other tokens after training by eta, mean over trials."""
        return {eta: float(np.mean(trials)) for eta, trials in self.last().items()}

    def step_powers(self) -> list[float]:
        """The C of eta^C: slope of the logarithm of what is left against that of eta below 1, one a
        trial."""
        last = {eta: trials for eta, trials in self.last().items() if eta < 1}
        same = min(map(len, last.values()))  # seeds that all have
        etas, logs = np.log([*last]), np.log([trials[:same] for trials in last.values()])
        return [np.polyfit(etas, values, 1)[0] for values in logs.T]

    def by_query(self) -> Figure:
        """Proposition 2: the sum by what the query token is, and what is left on the other
        tokens."""
        fig, (left, right) = plt.subplots(1, 2, figsize=(7.4, 3.7))
        looks = self.looks
        for field, colour, name in (
            ("from_relevant", BLUE, "label-relevant"),
            ("from_rest", ORANGE, "non-discriminative"),
        ):
            values = self.runs.traces("map 5", field)
            left.plot(looks, values.mean(0), color=colour, lw=2)
            left.fill_between(looks, values.min(0), values.max(0), color=colour, alpha=0.2)
            place, look = (looks[-1], values.mean(0)[-1] - 0.03), {"ha": "right", "va": "top"}
            left.annotate(f"{name}\nqueries", place, color=colour, fontsize=9, **look)
        left.set(xlabel="iteration", ylabel="attention on relevant tokens", ylim=(0, 1.02))
        left.set_title("Attention moves to relevant tokens")
        mean = 1 - self.relevant.mean(0)
        right.plot(looks[1:], mean[1:], color=BLUE, lw=2, label="measured")
        tail = looks >= np.median(self.ends)
        right.plot(
            looks[tail],
            mean[tail][0] * looks[tail][0] / looks[tail],
            "--",
            color="0.3",
            label=r"$O(1/t)$",
        )
        log_axes(right, [1, 10, 100])
        right.set_yticks([0.1, 0.2, 0.3, 0.4, 0.5])
        right.set(xlabel="iteration", ylabel="attention on other tokens", ylim=(0.05, 0.6))
        right.set_title("until the loss is zero (dotted)")
        right.axvline(looks[tail][0], color="0.6", lw=1, ls=":")
        right.legend(loc="lower left")
        return fig

    def readings(self) -> Figure:
        """Figure 4 in four readings of Section 4.1."""
        fig, axis = plt.subplots(figsize=(7, 4.2))
        up = {"map root": 7, "map printed": -7}  # two lines at one height
        for name, colour, label in READ:
            values = self.runs.traces(name, "attention").mean(0)
            line = (0, (3, 3)) if name == "map printed" else "-"
            axis.plot(self.looks, values, ls=line, color=colour, lw=2)
            at_end(axis, self.looks, values, label, colour, up.get(name, 0))
            if name == "map 5":
                axis.plot(self.looks, 1 - values, "--", color=colour, lw=2)
                at_end(axis, self.looks, 1 - values, "judged, on the\nother tokens", colour)
        axis.set(xlabel="iteration", ylabel="attention on relevant tokens", ylim=(0, 1.02))
        axis.set_title("With its own $a_{(l)}$ per position, attention rises most")
        return fig

    def more_patterns(self) -> Figure:
        """Figure 7: the same for more patterns."""
        fig, axes = plt.subplots(1, 3, figsize=(7.4, 3.2), sharey=True)
        for axis, m in zip(axes, COUNTS[1:]):
            values = self.runs.traces(f"map {m}", "attention")
            for part, colour, name in ((values, RED, "relevant"), (1 - values, BLUE, "others")):
                axis.plot(self.looks, part.mean(0), color=colour, lw=2)
                axis.fill_between(self.looks, part.min(0), part.max(0), color=colour, alpha=0.2)
                at_end(axis, self.looks, part.mean(0), name * (m == COUNTS[-1]), colour)
            axis.set(xlabel="iteration", title=f"M = {m}", ylim=(0, 1.02))
        axes[0].set_ylabel("summed attention")
        fig.suptitle("Attention moves to relevant tokens for every M")
        return fig
