"""The look of the plots and of a mean with its deviation, once."""

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
import seaborn as sns
from matplotlib.ticker import NullFormatter, NullLocator

from visprompt.methods import names

# One colour a method on every page, distinguishable in the common colour-vision deficiencies.
PALETTE = {
    "linear-probe": "#7f7f7f",
    "full-finetune": "#222222",
    "norm-tune": "#0072b2",
    "vp": "#e69f00",
    "ap": "#d55e00",
}
NAMES = names()
# of tasks; a figure with more takes them again
MARKERS = ["o", "s", "^", "D", "v", "P", "X", "<", ">", "*"]


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


def with_interval(fit: Mapping | None) -> str:
    """A slope with its interval as text; None stands for one that too few finished trials allow."""
    return (
        "too many at the cap"
        if fit is None
        else f"{fit['slope']:.2f} [{fit['low']:.2f}, {fit['high']:.2f}]"
    )


def seeds_line(ax, frame, by: str, label: str | None = None, value: str = "test", **style) -> None:
    """Mean over seeds along a column, with the range of the seeds as bars."""
    by_seed = (
        frame.assign(**{value: frame[value].astype(float)})
        .groupby([by, "seed"])[value]
        .mean()
        .unstack()
    )
    mean = by_seed.mean(axis=1)
    error = [mean - by_seed.min(axis=1), by_seed.max(axis=1) - mean]
    ax.errorbar(mean.index, mean, yerr=error, label=label, marker="o", ms=4, capsize=3, **style)


def told(frame, by: str, value: str = "test") -> str:
    """The means along a column as text, for the alternative text of `seeds_line`."""
    means = frame.assign(**{value: frame[value].astype(float)}).groupby(by)[value].mean()
    return ", ".join(
        f"{mean:.1f} at {at:g}" if isinstance(at, (int, float)) else f"{mean:.1f} at {at}"
        for at, mean in means.items()
    )


def seeds_band(ax, frame, by: str, value: str, label: str | None = None, **style) -> None:
    """Mean along a column, with the range of the rows as a band."""
    line = frame.groupby(by)[value].agg(["mean", "min", "max"])
    ax.fill_between(line.index, line["min"], line["max"], color=style.get("color"), alpha=0.2, lw=0)
    ax.plot(line.index, line["mean"], "o-", ms=4, label=label, **style)


def at_end(ax, xs: Sequence, ys: Sequence, text: str, color: str, up: float = 0) -> None:
    """Label a line at its largest x, in its colour; `up` points higher."""
    ax.annotate(
        *(text, max(zip(xs, ys, strict=True))),
        (6, up),
        textcoords="offset points",
        color=color,
        va="center",
    )


def legend_below(fig, axes, columns: int = 2) -> None:
    """One legend for several panels, each label once."""
    handles = {
        label: handle
        for ax in axes
        for handle, label in zip(*ax.get_legend_handles_labels(), strict=True)
    }
    fig.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=columns)


def plain_ticks(ax, values: Sequence[float]) -> None:
    """A logarithmic x axis with ticks at these values alone."""
    ax.set_xscale("log")
    ax.set_xticks(sorted(values), [f"{value:g}" for value in sorted(values)])
    ax.minorticks_off()


def log_axes(ax, ticks: Sequence[float], labels: Sequence[str] | None = None) -> None:
    """Both axes in logarithms, with plain numbers such as 8, 16 and 1,000 instead of powers of
    ten."""
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.set_xticks(ticks, labels or [f"{tick:g}" for tick in ticks])
    ax.xaxis.set_minor_locator(NullLocator())
    ax.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}" if value >= 1 else f"{value:g}")
    ax.yaxis.set_minor_formatter(NullFormatter())


def heat_map(ax, values, title: str) -> None:
    """Attention to patches (N,), as the square of the image, from 0 (dark) to its own maximum; no
    axes."""
    side = round(len(values) ** 0.5)
    ax.imshow(np.asarray(values)[: side * side].reshape(side, side), cmap="magma", vmin=0)
    ax.set_title(title, fontsize=9)
    ax.axis("off")
