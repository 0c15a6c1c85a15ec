"""The look of the plots and of a mean with its deviation, once."""

from collections.abc import Sequence

import matplotlib.pyplot as plt
import numpy as np
import seaborn as sns

from ..methods import names

# One colour a method on every page, distinguishable in the common colour-vision deficiencies.
PALETTE = {
    "linear-probe": "#7f7f7f",
    "full-finetune": "#222222",
    "norm-tune": "#0072b2",
    "vp": "#e69f00",
    "ap": "#d55e00",
}
NAMES = names()


def style() -> None:
    """Set fonts, grid and sizes for a page 700 px wide."""
    sns.set_theme(
        style="whitegrid",
        context="notebook",
        rc={
            "figure.figsize": (7, 3.6),
            "figure.constrained_layout.use": True,
            "axes.titlesize": 12,
            "axes.labelsize": 11,
            "legend.fontsize": 9,
            "xtick.labelsize": 10,
            "ytick.labelsize": 10,
            "axes.spines.top": False,
            "axes.spines.right": False,
        },
    )
    plt.rcParams["savefig.facecolor"] = "white"


def spread(values: Sequence[float]) -> str:
    """Mean and standard deviation (n - 1) of some values, one decimal, as text; of one value there is no deviation."""
    return f"{np.mean(values):.1f}" + (f" ± {np.std(values, ddof=1):.1f}" if len(values) > 1 else "")
