"""Theorem 1, Figure 2, Proposition 1 and Figure 3 of the shallow ViT: runs and pictures."""

from collections.abc import Sequence

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from ..pages.plots import at_end, log_axes, with_interval
from ..theory import shallow_measures
from .shallow_runs import (
    BLUE,
    GREEN,
    ORANGE,
    RED,
    SKY,
    Job,
    Runs,
    fitted,
    inverse,
    medians,
    of_four,
    scan,
)

SHARES = [0.1, 0.14, 0.2, 0.28, 0.4]  # alpha*
# the theorem's condition, Eq. 8, holds from alpha* = 0.1 on
ALPHA = {"tokens": 50, "confusion": 0.02}
BETWEEN = {  # name: settings of the curves against alpha*
    "judged": {"max_steps": 4000, "keep": ["step", "loss", "attention"]},
    "frozen": {"attention": "frozen", "max_steps": 6000},
    "shared": {"output": "shared", "max_steps": 3000},
    "shared frozen": {"output": "shared", "attention": "frozen", "max_steps": 3000},
    "shared CNN": {"output": "shared", "attention": "none", "max_steps": 3000},
    "CNN": {"attention": "none", "max_steps": 1200},
}
# the first of alpha* at which the CNN with own a is run: below, it is over any cap that is quick
CNN = 2
LABELS = {
    "judged": "ViT",
    "frozen": "attention fixed",
    "CNN": "1 × 1 CNN",
    "shared": "ViT, one a",
    "shared frozen": "fixed, one a",
    "shared CNN": "1 × 1 CNN, one a",
}
STYLES = {
    "judged": (BLUE, "o-"),
    "frozen": (RED, "s-"),
    "shared": (SKY, "o--"),
    "shared frozen": (ORANGE, "s--"),
}
NOISES = [0.002, 0.014]  # c_0: tau is at most sigma = 0.1, as Theorem 1 asks for
ERRORS = [0.02, 0.1, 0.2]  # sigma: at most 1 / M
# alpha*: B, as Eq. 9 lets it follow alpha*
GROWING = {a: round(8 * (0.4 / a) ** 2) for a in (0.14, 0.2, 0.28, 0.4)}
CAP = 2000  # iterations
# alpha*: with this batch all of Theorem 1's conditions hold, constants taken as 1
INSIDE = [0.28, 0.34, 0.4, 0.5]
MET = {"batch": 64, "neurons": 1000, "max_steps": 2000, **ALPHA}
STORED = [16, 32, 64]  # N
STEPS = [0.25, 0.5, 1.0, 2.0]  # eta
WIDTHS = [50, 100, 1000]  # m


def shares_of(name: str) -> list[float]:
    """The label-relevant fractions of one of `BETWEEN`."""
    return SHARES[CNN if name == "CNN" else 0 :]


def jobs() -> dict[str, Job]:
    """The runs of the page, by name."""
    return {
        **{
            f"alpha {n}": scan([{"relevant": a} for a in shares_of(n)], **ALPHA, **more)
            for n, more in BETWEEN.items()
        },
        "noise": scan([{"noise": c} for c in NOISES], max_steps=CAP),
        "error": scan([{"sigma": s} for s in ERRORS], max_steps=CAP),
        "batch": scan(
            [{"relevant": a, "batch": b} for a, b in GROWING.items()], max_steps=3000, **ALPHA
        ),
        "inside": of_four(scan([{"relevant": a} for a in INSIDE], **MET)),
        "inside frozen": of_four(
            scan([{"relevant": a} for a in INSIDE], attention="frozen", **MET)
        ),
        "step": scan([{"step": e} for e in STEPS], max_steps=4000),
        "stored": scan(
            [{"relevant": a, "samples": n} for a in (0.1, 0.4) for n in STORED],
            max_steps=1000,
            **ALPHA,
        ),
        "widths": scan([{"neurons": m} for m in WIDTHS], max_steps=600, keep=["attention"]),
    }


def gap(frozen: dict, trained: dict) -> tuple[float, float, float]:
    """The difference of two fitted powers, their intervals joined as if independent."""
    middle = frozen["slope"] - trained["slope"]
    below = np.hypot(frozen["slope"] - frozen["low"], trained["high"] - trained["slope"])
    above = np.hypot(frozen["high"] - frozen["slope"], trained["slope"] - trained["low"])
    return middle, middle - below, middle + above


class Curves:
    """The curves against 1 / alpha*: samples needed by name, and their fitted powers."""

    def __init__(self, runs: Runs):
        self.runs, self.keys = runs, inverse(SHARES)
        self.samples = {
            name: runs.curve(f"alpha {name}", inverse(shares_of(name))) for name in BETWEEN
        }
        self.samples |= {
            name: runs.curve(name, inverse(INSIDE)) for name in ("inside", "inside frozen")
        }
        self.fits = {name: fitted(values) for name, values in self.samples.items()}

    def against_shares(self, names: Sequence[str], ideal: Sequence[tuple[int, str]]) -> Figure:
        """Samples needed against 1 / alpha*, with the predicted powers as dashed lines.

        Args:
            ideal: (power, name of the curve at whose largest alpha* its line starts).
        """
        fig, axis = plt.subplots(figsize=(7, 3.9))
        keys = self.keys
        for name in names:
            colour, line = STYLES[name]
            values = [v if np.isfinite(v) else np.nan for v in medians(self.samples[name])]
            axis.plot(keys, values, line, color=colour)
            fit = self.fits[name]
            at_end(axis, keys, values, f"{LABELS[name]}: power {fit['slope']:.2f}", colour)
            for key, trials in self.samples[name].items():
                axis.plot(
                    [key] * len(trials),
                    [np.nan if n is None else n for n in trials],
                    ".",
                    color=colour,
                    alpha=0.35,
                )
        for (power, name), style in zip(ideal, (":", "-.")):
            start = medians(self.samples[name])[-1]
            line = [start * (k / keys[-1]) ** power for k in keys]
            axis.plot(keys, line, style, color="0.3", lw=1.2)
            at_end(axis, keys, line, f"power {power}", "0.3", up=7)
        log_axes(axis, keys, [f"1/{a:g}" for a in SHARES])
        axis.set(xlabel=r"$1/\alpha_*$", ylabel="samples needed, N = B T")
        most = ideal[0][0]
        axis.set_title(f"Samples grow with a power below the bound's {most}")
        return fig

    def iterations(self, names: Sequence[str]) -> Figure:
        """Figure 2: median iterations against 1 / alpha*, with the line of least squares."""
        fig, axis = plt.subplots(figsize=(7, 3.6))
        for name in names:
            colour, line = STYLES[name]
            mid = [
                shallow_measures.needed(self.runs.steps(f"alpha {name}", i))
                for i in range(len(self.keys))
            ]
            slope, start = np.polyfit(self.keys, mid, 1)
            axis.plot(self.keys, mid, line[0], color=colour)
            fit = self.fits[name]
            at_end(axis, self.keys, mid, f"{LABELS[name]}: power {fit['slope']:.2f}", colour)
            axis.plot(
                [0, max(self.keys)],
                [start, start + slope * max(self.keys)],
                "--",
                color=colour,
                lw=1,
            )
        axis.set(xlabel=r"$1/\alpha_*$", ylabel="iterations T", xlim=(0, None), ylim=(0, None))
        axis.set_title(r"Iterations grow about linearly with $1/\alpha_*$")
        return fig

    def with_cnn(self) -> Figure:
        """Figure 3: samples needed by the ViT and by the CNN; a median over the cap is drawn at the
        cap."""
        fig, axis = plt.subplots(figsize=(7, 3.7))
        for name, colour, line in (
            ("judged", BLUE, "o-"),
            ("CNN", GREEN, "^-"),
            ("shared", SKY, "o--"),
            ("shared CNN", ORANGE, "^--"),
        ):
            cap, xs = 8 * BETWEEN[name]["max_steps"], list(self.samples[name])
            values = medians(self.samples[name])
            shown = [min(v, cap) for v in values]
            axis.plot(xs, shown, line, color=colour)
            few = " (not run further)" if len(xs) < len(self.keys) else ""
            at_end(axis, xs, shown, LABELS[name] + few, colour)
            for key, value in zip(xs, values):
                if np.isinf(value):
                    axis.annotate(
                        "cap",
                        (key, cap),
                        xytext=(0, 6),
                        textcoords="offset points",
                        ha="center",
                        fontsize=8.5,
                    )
        log_axes(axis, self.keys, [f"1/{a:g}" for a in SHARES])
        axis.set(
            xlabel=r"$1/\alpha_*$",
            ylabel="samples needed, N = B T",
            ylim=(None, 1.8 * axis.get_ylim()[1]),
        )
        axis.set_title("A CNN needs more samples than the ViT")
        return fig

    def log_over_vit(self) -> np.ndarray:
        """log(samples of the CNN / of the ViT), mean over alpha*, one a trial; a censored trial
        counts as its cap."""
        logs = []
        for i in range(len(shares_of("CNN"))):
            pairs = zip(self.runs.steps("alpha CNN", i), self.runs.steps("alpha judged", i + CNN))
            logs.append(
                [
                    np.log(
                        (a or BETWEEN["CNN"]["max_steps"]) / (b or BETWEEN["judged"]["max_steps"])
                    )
                    for a, b in pairs
                ]
            )
        return np.mean(logs, 0)


def training(runs: Runs, i: int) -> Figure:
    """Loss and attention of the trials of one alpha*, up to success."""
    fig, (left, right) = plt.subplots(1, 2, figsize=(7.2, 3.4))
    for trial in runs.cells("alpha judged")[i]:
        for axis, field in ((left, "loss"), (right, "attention")):
            axis.plot(trial["trace"]["step"], trial["trace"][field], color=BLUE, lw=1.2, alpha=0.7)
    for axis in (left, right):
        axis.axvline(
            shallow_measures.needed(runs.steps("alpha judged", i)), color="0.3", lw=1, ls=":"
        )
        axis.set(xlabel="iteration", xlim=(0, 950))
    left.set(ylabel="test hinge loss", ylim=(0, 1.05), title=rf"$\alpha_* = {SHARES[i]:g}$")
    right.set(
        ylabel="attention on relevant tokens",
        ylim=(0, 1.05),
        title=r"$\alpha_\# = 0.02$, 50 tokens",
    )
    return fig


def batch_table(runs: Runs) -> pd.DataFrame:
    """Iterations and samples where B follows 1 / alpha*^2, with their powers in the last row."""
    keys = inverse(list(GROWING))
    steps = {key: runs.steps("batch", i) for i, key in enumerate(keys)}
    samples = runs.curve("batch", keys)
    rows = [
        (f"{a:g}", f"{b}", f"{t:,.0f}", f"{n:,.0f}")
        for (a, b), t, n in zip(GROWING.items(), medians(steps), medians(samples))
    ]
    rows.append(
        ("power of 1/α*", "2", with_interval(fitted(steps)), with_interval(fitted(samples)))
    )
    return pd.DataFrame(rows, columns=["α*", "B", "iterations T", "samples N = B T"]).set_index(
        "α*"
    )


def stored_table(runs: Runs) -> pd.DataFrame:
    """Success rates where N samples are stored and used again and again."""
    stored = iter(runs.cells("stored"))

    def share() -> str:
        return f"{100 * np.mean([t['steps'] is not None for t in next(stored)]):.0f} %"

    table = {f"α* = {a}": {f"N = {n}": share() for n in STORED} for a in (0.1, 0.4)}
    return pd.DataFrame(table).T


def widths_table(runs: Runs) -> pd.DataFrame:
    """What the number of hidden neurons does."""
    rows = []
    for m, trials in zip(WIDTHS, runs.cells("widths")):
        needed = shallow_measures.needed([t["steps"] for t in trials])
        attention = np.mean([t["trace"]["attention"][-1] for t in trials])
        rows.append(
            {
                "neurons m": m,
                "median iterations": f"{needed:,.0f}",
                "attention on relevant tokens at the end": f"{attention:.2f}",
            }
        )
    return pd.DataFrame(rows).set_index("neurons m")
