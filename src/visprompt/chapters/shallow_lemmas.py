"""Lemmas 1 to 4 and Appendix G of the shallow ViT: runs, tables and pictures."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from ..records import Record, recorded
from ..theory import shallow_measures, shallow_vit
from .shallow_runs import BLUE, COUNTS, GREEN, GREY, ORANGE, RED, SKY, Runs, scan, size

KEEP = ["step", "loss", "lucky_own", "lucky_rest", "lucky_grown", "others_grown", "lucky_rest_99", "kept", "kept_sign"]
KEEP += ["in_cone", "value_cosine", "query_1", "query_rest", "key_1", "key_rest", "value_1", "value_rest"]
EXTENSIONS = {  # of Appendix G
    "two classes, one head": {},
    "four classes (G.1)": {"classes": 4},
    "sets of three vectors, 0.7 wide (G.2)": {"members": 3},
    "four heads (G.3)": {"heads": 4},
    "skip connection (G.4)": {"skip": True},
}


def jobs() -> dict:
    """The runs of the page, by name."""
    long = {"output": "shared", "neurons": 1000, "max_steps": 60, "run_on": True, "watch": "growth", "keep": KEEP}
    return {
        "tails": tails,
        "lucky": lambda: recorded("shallow-lucky", {"counts": COUNTS}, lucky_cells),
        "lemma": lambda: scan([{}], **long),
        "extensions": lambda: scan(
            [{"patterns": 7, "dim": 14, **more} for more in EXTENSIONS.values()], max_steps=2000, keep=["attention"]
        ),
    }


def tails() -> Record:
    """The constants of Lemma 1 that sampled tails allow."""
    return recorded("shallow-hoeffding", {"count": 50, "seed": 0}, lambda: {"c": shallow_measures.hoeffding(50, 0)})


def constants_table(runs: Runs) -> pd.DataFrame:
    """Lemma 1: the largest constant by variable and weights."""
    return pd.DataFrame({"largest c": {n: f"{c:.2f}" for n, c in runs["tails"].values["c"].items()}})


def growth(runs: Runs) -> Figure:
    """Lemma 2: hidden neurons on the left, queries, keys and values on the right."""
    moments = runs.traces("lemma", "step")[0]
    fig, (left, right) = plt.subplots(1, 2, figsize=(7.4, 3.8))
    for field, colour, line, name in (
        ("lucky_grown", BLUE, "-", "lucky, own direction"),
        ("others_grown", ORANGE, "--", "others, own direction"),
        ("lucky_rest", GREY, ":", "lucky, $p_3 ... p_M$"),
    ):
        left.plot(moments, runs.traces("lemma", field).mean(0), line, color=colour, lw=2, label=name)
    left.set(xlabel="iteration", ylabel="component of $W_{O(i,\\cdot)}$", title="hidden neurons")
    left.legend(loc="center right", bbox_to_anchor=(1, 0.75))
    for kind, colour, width in (("query", SKY, 5), ("key", RED, 2), ("value", GREEN, 2)):
        for part, line in (("1", "-"), ("rest", "--")):
            values = runs.traces("lemma", f"{kind}_{part}").mean(0)
            right.plot(moments, values, line, color=colour, lw=width, label=kind if part == "1" else None)
    right.plot([], [], "--", color="0.3", label="other patterns")
    right.set(xlabel="iteration", ylabel="norm", title=r"$W_Q\mu$, $W_K\mu$, $W_V\mu$")
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
        slack = s.sigma + shallow_measures.token_noise(s)
        cells.append({"M": m, **shallow_measures.lucky_shares(m, s.dim, slack, 1_000_000 // s.dim, seed=m)})
    return {"cells": cells}


def lucky_table(runs: Runs) -> pd.DataFrame:
    """Lemma 3: the shares of lucky neurons for each M."""
    cells = pd.DataFrame(runs.cells("lucky")).set_index("M")
    shown = cells[["bound", "definition", "proof", "nearest"]].map(lambda v: f"{100 * v:.2f} %")
    shown.columns = ["bound", "angle at most sigma + tau", "smallest angle by 2 (sigma + tau)", "smallest angle"]
    return shown


def share_interval(value: float, minus: float = 0.0, count: int = 100_000) -> tuple[float, float, float]:
    """A share of `count`, less a bound, with its binomial interval."""
    half = 1.96 * np.sqrt(value * (1 - value) / count)
    return value - minus, value - half - minus, value + half - minus


def kept(runs: Runs) -> Figure:
    """Lemma 4: the lucky neurons of the start that still are."""
    fig, axis = plt.subplots(figsize=(7, 3.4))
    for field, colour, line, name in (
        ("kept", RED, "-", "all lucky neurons"),
        ("kept_sign", BLUE, "-", "those read out with their pattern's sign"),
        ("in_cone", GREY, "--", r"all within $\sigma+\tau$ (Definition 2)"),
    ):
        values = 100 * runs.traces("lemma", field).mean(0)
        axis.plot(runs.traces("lemma", "step")[0], values, line, color=colour, lw=2, label=name)
    axis.set(xlabel="iteration", ylabel="share, %", ylim=(-2, 102))
    axis.legend(loc="center right", bbox_to_anchor=(1, 0.76))
    return fig


def extensions_table(runs: Runs) -> pd.DataFrame:
    """Appendix G: successes, iterations and attention for each extension."""
    table = []
    for name, trials in zip(EXTENSIONS, runs.cells("extensions")):
        begin, end = np.mean([(t["trace"]["attention"][0], t["trace"]["attention"][-1]) for t in trials], 0)
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
