"""Tables 1 and 2 of the shallow ViT, and its Figure 1: who succeeds at which N, by alpha* and by
sigma."""

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from visprompt.records import Record, recorded

from ..pages.plots import log_axes
from ..theory import shallow_measures, shallow_vit
from .shallow_conditions import boundary
from .shallow_runs import BLUE, ORANGE, RED, Job, Runs, fitted, inverse, medians, scan

SHARES = {  # alpha*
    "quick": [0.32, 0.36, 0.4, 0.45],
    "paper": [0.3, 0.32, 0.35, 0.38, 0.41, 0.45],
}
INSIDE = [0.47, 0.5]  # beyond the figure, where Eq. 8 holds
FIGURE_1B = {"relevant": 0.3, "confusion": 0.2, "tokens": 50}
SIGMAS = [0.1, 0.3, 0.8]
# values are 100 times larger and F grows with their square
PRINTED = {"start": "printed", "step": 1e-4}
base = shallow_vit.Settings()


def composed(a: float) -> dict:
    """Figure 1a's fractions: non-discriminative tokens are half of all."""
    return {"relevant": a, "confusion": round(0.5 - a, 3)}


def figure_1a(shares: Sequence[float], **more) -> Job:
    """The job of Figure 1a at some alpha*."""
    return scan([composed(a) for a in shares], tokens=100, max_steps=2000, **more)


def jobs() -> dict[str, Job]:
    """The runs of the page, by name."""
    sigmas = [{"sigma": s} for s in SIGMAS]
    return {
        "1a": lambda p, run=True: figure_1a(SHARES[p.scale])(p, run),
        "1a inside": figure_1a(INSIDE),
        "1a shared": lambda p, run=True: figure_1a(SHARES[p.scale], output="shared")(p, run),
        "1b": scan(sigmas, max_steps=2000, **FIGURE_1B),
        "1b shared": scan(sigmas, max_steps=2000, output="shared", **FIGURE_1B),
        "1b printed": scan(sigmas, max_steps=1000, output="shared", **FIGURE_1B, **PRINTED),
    }


def notation(neurons: int) -> pd.DataFrame:
    """Table 1: the symbols, with the values of Section 4.1."""
    rows = [
        ("L, |S|", "tokens per sample, before and after some are removed", "50 or 100"),
        (
            "M",
            "patterns, orthonormal; 1 and 2 are discriminative",
            f"{base.patterns}; 10, 15, 20 in Appendix B",
        ),
        (
            "d, m_a, m_b",
            "dimension of tokens, values, and queries and keys",
            f"{base.dim}; 20 in Appendix B",
        ),
        ("m", "neurons of the hidden layer W_O", f"{base.neurons} (here {neurons})"),
        ("α*, α#", "share of label-relevant and of confusion tokens", "differs by figure"),
        (
            "c₀, τ",
            "noise of a token's entries; a token's distance from its pattern",
            f"{base.noise}; about {shallow_measures.token_noise(base):.3f}",
        ),
        (
            "σ, δ",
            "error of the initial W_V, and of the initial W_K and W_Q",
            f"{base.sigma}, {base.delta}",
        ),
        ("ξ", "standard deviation of the initial W_O", f"{base.xi}"),
        (
            "η, B, N, T",
            "step size, batch, samples, iterations",
            f"not printed (here {base.step}, {base.batch}, N = B T)",
        ),
    ]
    return pd.DataFrame(rows, columns=["symbol", "means", "value"]).set_index("symbol")


def notation_cells():
    import torch

    off = []
    for s in (
        base,
        shallow_vit.Settings(fractions="drawn"),
        shallow_vit.Settings(classes=4, patterns=7),
    ):
        x, y, relevant = shallow_vit.draw(s, torch.Generator().manual_seed(0), 500)
        disc = x.argmax(-1) < s.classes
        parts = [relevant, disc & ~relevant, ~disc & ~relevant]
        off.append(abs(sum(part.double().mean().item() for part in parts) - 1))
    inside = {
        str(d): shallow_measures.attention_bounds(shallow_vit.Settings(delta=d), range(20))
        for d in (0.0, 0.2)
    }
    return {"off": max(off), "inside": inside}


def checked_notation() -> Record:
    """Table 2's two rows that can be checked, on drawn data and random starts."""
    return recorded("shallow-notation", {"seed": 0}, notation_cells)


def inside_table(inside: dict[str, float]) -> pd.DataFrame:
    """Table 2: how often the bounds of Definition 1 hold, by delta."""
    return pd.DataFrame(
        {
            "share of weights between φ_n and ν_n": {
                f"δ = {d}": f"{100 * v:.1f} %" for d, v in inside.items()
            }
        }
    )


def success(values: Mapping[float, Sequence], grid: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Success rates `(len(grid), keys)` and, for each seed and key, the mean over the grid."""
    hit = np.array(
        [
            [[n is not None and n <= limit for n in trials] for trials in values.values()]
            for limit in grid
        ]
    )
    return hit.mean(2), hit.mean(0).T


def fine(grid: np.ndarray) -> np.ndarray:
    """The range of a grid in steps so small that no two trials need be equal on it."""
    return np.geomspace(grid[0], grid[-1], 1000)


def edges(places: Sequence[float]) -> np.ndarray:
    """Where cells around rising places end on a logarithmic axis."""
    logs = np.log(places)
    ends = [2 * logs[0] - logs[1], *logs, 2 * logs[-1] - logs[-2]]
    return np.exp((np.array(ends[:-1]) + ends[1:]) / 2)


def heat(
    axis: plt.Axes, values: Mapping[float, Sequence], grid: np.ndarray, places: Sequence[float]
) -> None:
    """Success rates as a heat map with logarithmic axes: columns at rising places, N upwards."""
    rate, _ = success(values, grid)
    axis.pcolormesh(edges(places), edges(grid), rate, cmap="gray", vmin=0, vmax=1)
    log_axes(axis, places)
    axis.set_yticks(grid[::3])
    axis.yaxis.set_minor_locator(NullLocator())
    axis.grid(False)
    axis.spines[:].set(visible=True, color="0.3")


class Success:
    """Samples needed by 1 / alpha* (a) and by sigma (b), with the N at which each is looked at."""

    def __init__(self, runs: Runs):
        parts = {
            name: [s["relevant"] for s in runs[name].settings["cells"]]
            for name in ("1a", "1a inside")
        }
        self.shares = [a for part in parts.values() for a in part]
        self.one = {
            key: n
            for name, part in parts.items()
            for key, n in runs.curve(name, inverse(part)).items()
        }
        self.least = boundary(0.5, shallow_vit.Settings(**runs["1a"].settings["cells"][0]))
        own = {key: n for key, n in self.one.items() if round(1 / key, 3) not in INSIDE}
        self.fit = fitted(own)  # of the figure's alpha*
        self.fit_inside = fitted({key: n for key, n in self.one.items() if 1 / key >= self.least})
        self.fit_met = fitted({key: n for key, n in own.items() if 1 / key >= self.least})
        self.middle = medians(self.one)
        self.grid = np.geomspace(min(self.middle) / 2, max(self.middle) * 2, 16)
        self.sigma = runs.curve("1b", SIGMAS)
        finite = [m for m in medians(self.sigma) if np.isfinite(m)]
        self.grid_b = np.geomspace(min(finite) / 3, max(finite) * 3, 16)

    def more_relevant(self) -> np.ndarray:
        """Success at the largest alpha* minus that at the smallest, mean over N, points; one a
        seed."""
        _, by_trial = success(self.one, fine(self.grid))
        return 100 * (
            by_trial[:, int(np.argmax(self.shares))] - by_trial[:, int(np.argmin(self.shares))]
        )

    def less_error(self) -> np.ndarray:
        """Success at the smallest sigma minus that at the largest, mean over N, points; one a
        seed."""
        _, by_trial = success(self.sigma, fine(self.grid_b))
        return 100 * (by_trial[:, 0] - by_trial[:, -1])

    def figure(self) -> Figure:
        """Both heat maps."""
        fig, (left, right) = plt.subplots(1, 2, figsize=(7.4, 4.4), width_ratios=[1.7, 1])
        points = sorted(zip([a**-2 for a in self.shares], self.middle, self.one))
        squares = [point[0] for point in points]
        heat(left, {key: self.one[key] for *_, key in points}, self.grid, squares)
        named = [a for a in self.shares if a != INSIDE[0]]  # else two labels overlap
        left.set_xticks([a**-2 for a in named], [f"{a**-2:.1f}\n({a:g})" for a in named])
        middle = [point[1] for point in points]
        left.plot(squares, middle, "o", color=BLUE, ms=5, label="half of the trials succeed")
        law = np.median(middle) * np.array(squares) / np.median(squares)
        left.plot(squares, law, "--", color=RED, lw=1.8, label=r"linear in $\alpha_*^{-2}$")
        left.axvline(self.least**-2, color=ORANGE, lw=1.8, label="Eq. 8 holds to the left")
        power = [f"$\\alpha_*^{{-{fit['slope']:.1f}}}$" for fit in (self.fit, self.fit_inside)]
        left.set(xlabel=r"$\alpha_*^{-2}$ ($\alpha_*$), logarithmic", ylabel="samples N")
        left.set_title(f"(a) N grows like {power[0]};\nwhere Eq. 8 holds, like {power[1]}")
        left.tick_params(axis="x", labelsize=8.5)
        left.legend(loc="upper left", framealpha=1, fontsize=8)
        heat(right, self.sigma, self.grid_b, SIGMAS)
        right.set(
            xlabel=r"initial error $\sigma$", title="(b) N hardly depends\non the initial error"
        )
        return fig
