"""Lemmas 1 to 4 of the shallow ViT: runs, tables and pictures."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from visprompt.records import Record, recorded

from ..pages.plots import at_end
from ..theory import shallow_measures, shallow_vit
from .shallow_conditions import least_eps, tau
from .shallow_runs import BLUE, COUNTS, GREEN, GREY, ORANGE, RED, SKY, Job, Runs, scan, size

KEEP = [
    "step",
    "loss",
    "lucky_own",
    "lucky_rest",
    "lucky_grown",
    "others_grown",
    "lucky_rest_99",
    "kept",
    "kept_sign",
]
KEEP += [
    "in_cone",
    "value_cosine",
    "query_1",
    "query_rest",
    "key_1",
    "key_rest",
    "value_1",
    "value_rest",
]


def jobs() -> dict[str, Job]:
    """The runs of the page, by name."""
    long = {
        "output": "shared",
        "neurons": 1000,
        "max_steps": 60,
        "run_on": True,
        "watch": "growth",
        "keep": KEEP,
    }
    return {
        "tails": lambda p, run=True: tails(),
        "lucky": lambda p, run=True: recorded("shallow-lucky", {"counts": COUNTS}, lucky_cells),
        "lemma": scan([{}], **long),
    }


def tails() -> Record:
    """The constants of Lemma 1 that sampled tails allow."""
    return recorded(
        "shallow-hoeffding",
        {"count": 50, "seed": 0},
        lambda: {"c": shallow_measures.hoeffding(50, 0)},
    )


def constants_table(runs: Runs) -> pd.DataFrame:
    """Lemma 1: the largest constant by variable and weights."""
    return pd.DataFrame(
        {"largest c": {n: f"{c:.2f}" for n, c in runs["tails"].values["c"].items()}}
    )


def growth(runs: Runs) -> Figure:
    """Lemma 2: hidden neurons on the left, queries, keys and values on the right."""
    moments = runs.traces("lemma", "step")[0]
    fig, (left, right) = plt.subplots(1, 2, figsize=(7.4, 3.8))
    for field, colour, line, name in (
        ("lucky_grown", BLUE, "-", "lucky, own direction"),
        ("others_grown", ORANGE, "--", "others, own direction"),
        ("lucky_rest", GREY, ":", "lucky, $p_3 ... p_M$"),
    ):
        left.plot(
            moments, runs.traces("lemma", field).mean(0), line, color=colour, lw=2, label=name
        )
    left.set(xlabel="iteration", ylabel="component of $W_{O(i,\\cdot)}$")
    left.set_title("Lucky neurons grow most")
    left.legend(loc="center right", bbox_to_anchor=(1, 0.75))
    for kind, colour, width in (("query", SKY, 5), ("key", RED, 2), ("value", GREEN, 2)):
        for part, line in (("1", "-"), ("rest", "--")):
            values = runs.traces("lemma", f"{kind}_{part}").mean(0)
            right.plot(
                moments, values, line, color=colour, lw=width, label=kind if part == "1" else None
            )
    right.plot([], [], "--", color="0.3", label="other patterns")
    right.set(xlabel="iteration", ylabel=r"norm of $W_Q\mu$, $W_K\mu$, $W_V\mu$")
    right.set_title("Discriminative patterns grow")
    right.legend(loc="center right", bbox_to_anchor=(1, 0.6))
    return fig


def grown(runs: Runs, field: str) -> np.ndarray:
    """How much one of `KEEP` grew in training, one value a trial."""
    values = runs.traces("lemma", field)
    return values[:, -1] - values[:, 0]


def lucky_cells():
    cells = []
    for m in COUNTS:
        s = shallow_vit.Settings(**size(m))
        slack = s.sigma + tau(s)
        cells.append(
            {"M": m, **shallow_measures.lucky_shares(m, s.dim, slack, 1_000_000 // s.dim, seed=m)}
        )
    return {"cells": cells}


def lucky_table(runs: Runs) -> pd.DataFrame:
    """Lemma 3: the shares of lucky neurons for each M."""
    cells = pd.DataFrame(runs.cells("lucky")).set_index("M")
    shown = cells[["bound", "definition", "proof", "nearest"]].map(lambda v: f"{100 * v:.2f} %")
    shown.columns = [
        "bound",
        "angle at most σ + τ (Definition 2)",
        "smallest angle by 2 (σ + τ) (proof)",
        "smallest angle",
    ]
    return shown


def lucky_conditions() -> pd.DataFrame:
    """Lemma 3's conditions for each M, at 1000 neurons and N = 2000."""
    every = [shallow_vit.Settings(**size(m)) for m in COUNTS]
    slack = [s.sigma + tau(s) for s in every]
    most, eps = [np.pi / s.patterns for s in every], [least_eps(s, 2000) for s in every]
    rows = {
        "σ + τ": [f"{value:.3f}" for value in slack],
        "must be at most π / M": [f"{value:.3f}" for value in most],
        "met?": ["yes" if there <= limit else "no" for there, limit in zip(slack, most)],
        "least ε_m": [f"{value:.2f}" for value in eps],
        "bound with this ε_m, % of m": [
            f"{100 * max(0, 1 / m * (1 - e - s * m / np.pi)):.1f}"
            for m, e, s in zip(COUNTS, eps, slack)
        ],
    }
    return pd.DataFrame(rows, index=pd.Index(COUNTS, name="M"))


def share_interval(
    value: float, minus: float = 0.0, count: int = 100_000
) -> tuple[float, float, float]:
    """A share of `count`, less a bound, with its binomial interval."""
    half = 1.96 * np.sqrt(value * (1 - value) / count)
    return value - minus, value - half - minus, value + half - minus


def kept(runs: Runs) -> Figure:
    """Lemma 4: the lucky neurons of the start that still are."""
    fig, axis = plt.subplots(figsize=(7, 3.4))
    for field, colour, line, name in (
        ("kept", RED, "-", "still lucky,\nof all lucky neurons"),
        ("kept_sign", BLUE, "-", "of those with their\npattern's sign"),
        ("in_cone", GREY, "--", "of all neurons, within\n$\\sigma+\\tau$ (Definition 2)"),
    ):
        values = 100 * runs.traces("lemma", field).mean(0)
        steps = runs.traces("lemma", "step")[0]
        axis.plot(steps, values, line, color=colour, lw=2)
        at_end(axis, steps, values, name, colour, 12 if field == "in_cone" else 0)
    axis.set(xlabel="iteration", ylabel="share of neurons, %", ylim=(-2, 102))
    axis.set_title("Lucky neurons with their pattern's sign stay lucky")
    return fig
