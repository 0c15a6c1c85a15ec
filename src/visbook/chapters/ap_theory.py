"""What the page on AP's Theorem 1 and Lemma 1 draws and judges; other readings of the theorem are
in the next module."""

from collections.abc import Iterator

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from IPython.display import Markdown
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ..pages.plots import log_axes, with_interval
from ..theory import ap_limits
from .ap_theory_runs import (
    COLOURS,
    COUNTS,
    JUDGED,
    LAWS,
    MAIN,
    OCTAVES,
    SETTLED,
    STANDARD,
    ToyRuns,
    local,
    median,
)


def lemma_1_cells():
    """Attention distances by the model, against the formula, with noise, by beta, and with another
    rule for ties."""
    exact, noisy, betas = [], [], []
    for n in COUNTS[2]:
        for d_a in sorted({1, 2, n // 4, n // 2}):
            before, after = ap_limits.lemma_1(n, d_a, seeds=range(8))
            row = {"P": n, "d_A": d_a, "before": before.mean(), "after": after.mean()}
            exact.append(
                row
                | {
                    "gap_before": abs(before - (1 + d_a) / n).max(),
                    "gap_after": abs(after - 1 / n).max(),
                }
            )
        before, after = ap_limits.lemma_1(n, n // 4, noise=0.1, seeds=range(200))
        noisy.append({"P": n, "before": before.mean(), "after": after.mean()})
    for beta in np.linspace(0.5, 2.5, 41):
        before, after = ap_limits.lemma_1(16, 4, beta=float(beta), seeds=range(8))
        betas.append({"beta": float(beta), "before": before.mean(), "after": after.mean()})
    first = [ap_limits.lemma_1(n, n // 4, ties="first", seeds=range(8)) for n in COUNTS[2]]
    first = [{"P": n, "before": b.mean(), "after": a.mean()} for n, (b, a) in zip(COUNTS[2], first)]
    return {"exact": exact, "noisy": noisy, "betas": betas, "first": first}


def lemma_1_figure(exact: pd.DataFrame, noisy: pd.DataFrame, betas: pd.DataFrame) -> Figure:
    """Both layers' attention distance against P, beside the paper's formulas, and against beta."""
    fig, (left, right) = plt.subplots(1, 2, figsize=(7.2, 3.6), sharey=False)
    quarter = exact[exact.d_A == exact.P // 4]
    left.plot(
        COUNTS[2], [(1 + n // 4) / n for n in COUNTS[2]], "--", color="0.3", lw=1, label="paper"
    )
    left.plot(COUNTS[2], [1 / n for n in COUNTS[2]], "--", color="0.3", lw=1)
    for when, colour, marker in (("before", "#0072b2", "o"), ("after", "#d55e00", "s")):
        name = {"before": "layer 1", "after": "layer 2"}[when]
        left.plot(quarter.P, quarter[when], marker, color=colour, label=f"{name}, no noise")
        left.plot(
            noisy.P,
            noisy[when],
            marker,
            color=colour,
            mfc="white",
            ms=10 if when == "before" else 5,  # the layers lie on each other
            label=f"{name}, noise 0.1/P",
        )
        right.plot(
            betas.beta,
            betas[when],
            color=colour,
            label=name,
            lw=2,
            ls="-" if when == "before" else "--",
        )
    log_axes(left, COUNTS[2])
    left.set(
        xlabel="tokens P",
        ylabel="mean attention distance (tokens)",
        title="Noise undoes the lemma ($d_A = P/4$)",
        ylim=(None, 2000),
    )
    left.legend(ncols=1, loc="upper left", fontsize=8)
    edge = np.sqrt(np.log(15))
    right.axvline(edge, color="0.5", ls=":", lw=1)
    right.text(edge + 0.04, 0.18, r"$\lambda_1 = 1/2$", fontsize=9)
    right.set(xlabel=r"$\beta$", title="and so does strong attention", ylim=(0, 0.4))
    right.legend(loc="lower right")
    return fig


def lemma_1_reading(noisy: pd.DataFrame, first: pd.DataFrame) -> Markdown:
    """What Lemma 1 needs without saying so."""
    last, last_first = noisy.iloc[-1], first.iloc[-1]
    return Markdown(
        "**What to take from it.** The lemma holds exactly, but only under three conditions that "
        "it does not state.\n\n- *No noise.* Only without noise do the background keys tie. With "
        "the smallest noise one key wins for nearly all queries. At "
        f"P = {last.P:.0f} and σ = 0.1/P the distance is {last.before:.1f} tokens in layer 1 and "
        f"{last.after:.1f} in layer 2, about P/3; the formulas give "
        f"{(1 + last.P // 4) / last.P:.2f} and {1 / last.P:.3f}.\n- *Ties go to the nearest key.* "
        "If the first of equal keys wins, as in a plain argmax, it is "
        f"{last_first.before:.1f} and {last_first.after:.1f} tokens.\n- *Weak attention.* "
        "λ₁ < 1/2 means exp(β²) < P − 1. Beyond it (right panel) the discriminative query still "
        "finds its own key, and the distance does not fall at all."
    )


def samples_figure(toy: ToyRuns) -> Figure:
    """Samples to zero held-out error against P, both layers, beside the paper's growth and the
    symmetric limit."""
    fig, axis = plt.subplots(figsize=(7, 4.2))
    for layer in (1, 2):
        steps = toy.trials(MAIN, layer, "steps")
        for n, values in steps.items():
            done = [STANDARD.batch * v for v in values if v is not None]
            axis.plot([n] * len(done), done, "o", color=COLOURS[layer], alpha=0.3, ms=5, mew=0)
        used = toy.fits[layer]["used"]
        mid = [STANDARD.batch * median(steps[n]) for n in used]
        label = f"SGD, layer {layer}: slope {with_interval(toy.fits[layer])}"
        axis.plot(used, mid, "-", color=COLOURS[layer], lw=2, label=label)
        growth, name = LAWS[layer]
        line = mid[0] * growth(np.array(used)) / growth(used[0])
        axis.plot(used, line, "--", color="0.3", lw=1.2)
        axis.text(
            used[-1] * 1.03,
            line[-1],
            f"{name} ({toy.predicted[layer]:.2f})",
            va="center",
            fontsize=10,
        )
        times = {
            n: v[0] for n, v in toy.limit_values(layer).items() if v[0] and used[0] <= n <= used[-1]
        }
        limit = [time * STANDARD.batch / STANDARD.step for time in times.values()]
        axis.plot(
            times.keys(),
            limit,
            ":",
            color=COLOURS[layer],
            lw=2,
            label=f"symmetric limit, layer {layer}",
        )
    log_axes(axis, OCTAVES)
    axis.set_xlim(right=230)
    axis.set_ylim(top=3e7)
    axis.set(xlabel="tokens P", ylabel="samples to the first zero held-out error")
    axis.set_title("Layer 2 needs more samples, and ever more as P grows")
    axis.legend(loc="upper left")
    return fig


def judge_samples(toy: ToyRuns) -> None:
    """The growth of both layers' samples, and which layer needs more at the largest P that both
    have."""
    for layer, fit in toy.fits.items():
        toy.judge(
            f"ap.theorem-1.layer-{layer}-slope",
            fit,
            toy.behind[layer],
            f"{SETTLED} P from {fit['used'][0]} to {fit['used'][-1]}, local slopes {local(fit)}; "
            f"symmetric limit {toy.limits[layer]['slope']:.2f}.",
        )
    shared = max(set(toy.fits[1]["used"]) & set(toy.fits[2]["used"]))
    steps = (toy.trials(MAIN, h, "steps")[shared] for h in (1, 2))
    one, two = (np.log([np.inf if v is None else v for v in values]) for values in steps)
    apart = {
        "slope": np.median(two) - np.median(one),
        "low": two.min() - one[np.isfinite(one)].max(),
        "high": two[np.isfinite(two)].max() - one.min(),
    }
    toy.judge(
        "ap.theorem-1.layer-2-needs-more",
        apart,
        [*toy.behind[1], *toy.behind[2]],
        f"At P = {shared}. The interval spans the extreme trials of both layers.",
    )


def kept_run(toy: ToyRuns) -> Markdown | None:
    """What the kept run is; None where there is none."""
    made = [record for (name, _), record in toy.runs.items() if name != MAIN]
    if not made:
        return None
    return Markdown(
        f"The kept run has {len(made)} curves and "
        f"{sum(len(f['steps']) for r in made for f in r.values['cells']):,} trials. It took "
        f"{sum(r.seconds for r in made) / 60:.0f} minutes on one shared core "
        f"({made[0].hardware['cpu']}), on {made[0].date}."
    )


def agreement(toy: ToyRuns) -> Iterator[dict]:
    """A row for each point of this run, beside the kept one: the same seeds of the same
    settings."""
    for layer, record in toy.own.items():
        for cell, found in zip(record.settings["cells"], record.values["cells"]):
            row = {
                "layer": layer,
                "P": cell["tokens"],
                "median steps": f"{median(found['steps']):,.0f} ({len(found['steps'])} trials)",
            }
            if (JUDGED, layer) in toy.runs:
                before = toy.trials(JUDGED, layer, "steps").get(cell["tokens"], [])
                known = dict(zip(toy.runs[JUDGED, layer].settings["seeds"], before))
                pairs = [
                    (a, known[s])
                    for s, a in zip(record.settings["seeds"], found["steps"])
                    if s in known
                ]
                row["in the kept run"] = (
                    f"{median(before):,.0f} ({len(before)} trials)" if before else "–"
                )
                row["trials with the same number of steps"] = (
                    f"{sum(a == b for a, b in pairs)} of {len(pairs)}"
                )
            yield row


def draw_trace(toy: ToyRuns, axis: Axes, layer: int, tokens: int) -> None:
    """Direction, error and own share of the median trial while it trains."""
    cells = toy.runs[MAIN, layer].settings["cells"], toy.runs[MAIN, layer].values["cells"]
    trace = np.array(
        next(found["trace"] for cell, found in zip(*cells) if cell["tokens"] == tokens)
    )
    letter = "v" if layer == 1 else "e"
    styles = (("-", "#0072b2"), ("--", "#56b4e9"), ("-", "#d55e00"), ("--", "#e69f00"))
    for i, (line, colour) in enumerate(styles):
        axis.plot(
            trace[:, 0], trace[:, 3 + i], line, color=colour, lw=2, label=f"${letter}_{i + 1}$"
        )
    axis.plot(trace[:, 0], trace[:, 1], color="0.4", lw=1, label="held-out error")
    axis.plot(trace[:, 0], trace[:, 7], ":", color="#009e73", lw=2, label="own share")
    axis.set_xscale("log")
    axis.set_xticks([t for t in (1, 10, 100, 1000, 10_000, 100_000) if t <= 1.3 * trace[-1, 0]])
    axis.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    axis.set(xlabel="step", title=f"Layer {layer}, P = {tokens}")


def slice_figure(toy: ToyRuns, tokens: int) -> Figure:
    """Both layers' median trial at one P, while it trains."""
    fig, axes = plt.subplots(1, 2, figsize=(7.2, 3.4), sharey=True)
    for layer, axis in zip((1, 2), axes):
        draw_trace(toy, axis, layer, tokens)
        axis.set_ylim(-2.2, 1.1)
    axes[0].set_ylabel("component of the mean prompt; share")
    axes[0].legend(loc="lower left", fontsize=8, handlelength=1.4)
    axes[1].legend(loc="lower left", fontsize=8, handlelength=1.4)
    return fig


def slices(toy: ToyRuns) -> dict[str, Figure] | Figure:
    """A picture for every P that both layers have, for a slider."""
    found = {
        f"P = {n}": slice_figure(toy, n)
        for n in sorted(set(toy.fits[1]["used"]) & set(toy.fits[2]["used"]))
    }
    return found if len(found) > 1 else [*found.values()][0]
