"""Other readings of AP's Theorem 1: the exponents of all that the bounds name, laws, choices, and
noise."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter, NullLocator

from ..pages.plots import log_axes, with_interval
from ..theory import ap_limits
from .ap_theory_runs import (
    CAPS,
    COLOURS,
    FIXED,
    JUDGED,
    LOUD_CAPS,
    MAIN,
    NOISE_COUNT,
    OCTAVES,
    READINGS,
    STANDARD,
    ToyRuns,
    constant,
    fitted,
    local,
    median,
    medians,
)

WIDE, FREE = "four times the batch", "batches drawn freely"  # of READINGS


def printed(name: str, layer: int) -> str:
    """The exponent that A25 or A28 has."""
    if "sigma" in name:
        return "1 as stated, -1 as proved"
    return "1" if "eta" in name else "-1" if layer == 1 else "0"


def greek(text: str) -> str:
    """A quantity as readers see it: γ for gamma."""
    for name, letter in (("gamma", "γ"), ("P sigma", "Pσ"), ("eta", "η"), (" - ", " − ")):
        text = text.replace(name, letter)
    return text


def exponents(toy: ToyRuns) -> pd.DataFrame:
    """A row a quantity and layer: the exponent that the bound has, and the measured one."""

    def row(against, layer, predicted, fit, ends):
        return {
            "against": greek(against),
            "layer": layer,
            "predicted": predicted,
            "measured [95 %]": with_interval(fit),
            "range": ends,
            "local slopes": local(fit),
        }

    rows = [
        row("P", h, f"{toy.predicted[h]:.2f}", fit, f"{fit['used'][0]} to {fit['used'][-1]}")
        for h, fit in toy.fits.items()
    ] + [
        row(name, h, printed(name, h), fit, f"{min(fit['used']):.3g} to {max(fit['used']):.3g}")
        for (name, h), fit in toy.powers.items()
    ]
    return pd.DataFrame(rows).set_index("against")


def law_figure(toy: ToyRuns) -> Figure:
    """Times over candidate laws: a flat line is a law that holds."""
    fig, (left, right) = plt.subplots(1, 2, figsize=(7.2, 3.6))
    draw_constant(toy, left)
    sgd = medians(toy.trials(MAIN, 2, "steps"))
    limit = {n: v[0] for n, v in toy.limit_values(2).items()}
    laws = (
        ("$P^2$", lambda n: n**2, "#56b4e9"),
        (r"$P^2\log P$", lambda n: n**2 * np.log(n), COLOURS[2]),
        ("$P^3$", lambda n: n**3, "0.4"),
    )
    for name, law, colour in laws:
        for times, line in ((sgd, "o-"), (limit, ":")):
            first = next(iter(times))
            values = [t / law(n) * law(first) / times[first] for n, t in times.items()]
            right.plot(
                times.keys(),
                values,
                line,
                color=colour,
                lw=2,
                label=f"over {name}" if line == "o-" else None,
            )
    right.plot([], [], ":", color="k", label="symmetric limit")
    log_axes(right, OCTAVES[:-1])
    right.set_yticks([0.2, 0.5, 1, 2, 5])
    right.set(xlabel="tokens P", ylabel="T over the law, 1 at P = 8")
    right.set_title("Layer 2: SGD follows $P^2\\log P$")
    right.legend(fontsize=8, loc="upper left")
    return fig


def draw_constant(toy: ToyRuns, axis: Axes) -> None:
    """Layer 1's time over P, with gamma and eta taken out."""
    sgd = {
        n: constant(STANDARD.step * t, n) for n, t in medians(toy.trials(MAIN, 1, "steps")).items()
    }
    axis.plot(sgd.keys(), sgd.values(), "o-", color=COLOURS[1], label="SGD")
    limit = {n: constant(v[0], n) for n, v in toy.limit_values(1).items()}
    axis.plot(limit.keys(), limit.values(), ":", color="k", label="symmetric limit")
    axis.axhline(32, color="0.5", lw=1, ls="--")
    axis.axhline(16, color="0.5", lw=1, ls="--")
    axis.text(8, 32.4, "32: and the slide along the edge", fontsize=8.5)
    axis.text(12, 14.6, "16: the straight walk", fontsize=8.5)
    axis.set_xscale("log")
    axis.set_xticks([*OCTAVES, 256], [str(n) for n in [*OCTAVES, 256]])
    axis.xaxis.set_minor_locator(NullLocator())
    axis.set(xlabel="tokens P", ylabel=r"$(1+\gamma)\,\eta\,T / P$", ylim=(8, 35))
    axis.set_title("Layer 1: $T/P$ rises towards 32")
    axis.legend(loc="lower right")


def reading_rows(toy: ToyRuns) -> Iterator[dict]:
    """A row for each reading and layer, and for each symmetric limit."""
    for name, layer in toy.runs:
        if name not in (JUDGED, FIXED, *READINGS):
            continue
        steps = toy.trials(name, layer, "steps")
        flat = [v for values in steps.values() for v in values]
        judged_ones = toy.trials(JUDGED, layer, "steps") if (JUDGED, layer) in toy.runs else {}
        same = {n: v for n, v in judged_ones.items() if n in steps}
        yield {
            "reading": name,
            "layer": layer,
            "P": ", ".join(map(str, steps)),
            "slope [95 %]": fitted(steps),
            "main setting, same P": fitted(same) if len(same) > 1 else "–",
            "median steps": ", ".join(
                "over cap" if np.isinf(m) else f"{m:,.0f}" for m in medians(steps).values()
            ),
            "trials at the cap": f"{sum(v is None for v in flat)} of {len(flat)}",
        }
    for layer, goal, gamma in toy.flows:
        fit = ap_limits.slope(toy.limit_values(layer, "time", goal, gamma))
        yield {
            "reading": f"symmetric limit{', goal y f ≥ 1/P' if goal == 'margin' else ''}, "
            f"γ = {gamma}",
            "layer": layer,
            "P": f"{fit['used'][0]} to {fit['used'][-1]}",
            "slope [95 %]": f"{fit['slope']:.2f}; local {local(fit)}",
            "main setting, same P": "–",
            "median steps": "–",
            "trials at the cap": "–",
        }


def draw_steps(
    axis: Axes, values: Mapping, cap: float, look: dict, label: str, scale: float = 1.0
) -> None:
    """Medians as a line; a median over the cap is a triangle at the cap, filled for the fixed
    sigma's diamonds."""
    mid = medians(values)
    inside = {x: m / scale for x, m in mid.items() if np.isfinite(m)}
    over = [x for x, m in mid.items() if np.isinf(m)]
    axis.plot(inside.keys(), inside.values(), label=label, **look)
    face = look["color"] if look.get("marker") == "D" else "white"
    axis.plot(over, [cap / scale] * len(over), "^", mfc=face, color=look["color"], ms=8)


def noise_figure(toy: ToyRuns) -> Figure:
    """Steps against the noise at one P, and against P for noise that shrinks with it and noise that
    does not."""
    fig, (left, right) = plt.subplots(1, 2, figsize=(7.2, 3.6))
    for layer in (1, 2):
        values = toy.scanned("noise", layer, lambda c: c["noise"])
        look = dict(color=COLOURS[layer], marker="o", lw=2)
        label = f"layer {layer}, P = {NOISE_COUNT[layer]}"
        draw_steps(left, values, LOUD_CAPS[layer], look, label, median(values[0.0]))
        for name, said, cap, style in (
            (JUDGED, "0.1/P", CAPS[layer], {"lw": 1, "alpha": 0.5}),
            ("σ = 0.5/P", "0.5/P", 20_000, {"marker": "s", "lw": 1.5, "ls": "--"}),
            (FIXED, "0.05", LOUD_CAPS[layer], {"marker": "D", "lw": 2}),
        ):
            look = {"color": COLOURS[layer], **style}
            draw_steps(
                right,
                toy.trials(name, layer, "steps"),
                cap,
                look,
                rf"layer {layer}, $\sigma$ = {said}",
            )
    left.axvspan(0, 1, color="0.93", zorder=0)
    left.text(0.06, 0.62, r"$P\sigma < 1$", fontsize=9)
    left.set_xticks([0, 1, 2, 3, 4])
    left.set_title("Layer 2 tolerates less noise")
    right.set_title(r"A fixed $\sigma$ fails as P grows")
    left.set_yscale("log")
    left.set_yticks([0.5, 1, 2, 5, 10], ["0.5", "1", "2", "5", "10"])
    left.yaxis.set_minor_formatter(NullFormatter())
    left.set(xlabel=r"$P\sigma$", ylabel="steps over those without noise", ylim=(0.5, 30))
    left.legend(fontsize=8, loc="upper left")
    log_axes(right, OCTAVES)
    right.set(xlabel="tokens P", ylabel="steps to zero held-out error", ylim=(20, 4e6))
    right.legend(fontsize=8, loc="upper left", ncols=1)
    return fig


def pair_text(toy: ToyRuns, name: str, layer: int) -> str:
    """'2.49 against 2.37': a reading's slope and the judged one over the same P."""
    steps = toy.trials(name, layer, "steps")
    same = {n: v for n, v in toy.trials(JUDGED, layer, "steps").items() if n in steps}
    return f"{fitted(steps)} against {fitted(same)}"


def ratio(toy: ToyRuns, name: str, layer: int, tokens: int) -> float:
    """A reading's median steps over those of the judged one."""
    return median(toy.trials(name, layer, "steps")[tokens]) / median(
        toy.trials(JUDGED, layer, "steps")[tokens]
    )


def leaning(toy: ToyRuns, name: str) -> float:
    """Median difference of the mean prompt's e1 and e2 parts at the end, layer 2 and P = 16."""
    return median([abs(d[0] - d[1]) for d in toy.trials(name, 2, "direction")[16]])


def own_share(toy: ToyRuns, name: str) -> float:
    """Median own share of the tokens at the end, layer 2 and P = 16."""
    return median(toy.trials(name, 2, "own")[16])


def lost(trials: Iterable) -> str:
    """How many of some trials did not end within the cap, as text: '3 of 24'."""
    trials = list(trials)
    return f"{sum(trial is None for trial in trials)} of {len(trials)}"


def lasting(toy: ToyRuns) -> str:
    """How many second-layer prompts lose their zero error again."""
    trials = toy.trials("zero error that lasts to 1.25 T", 2, "steps")
    return lost(chain(*trials.values()))


def noise_at_layer_2(toy: ToyRuns) -> tuple[float, str]:
    """How many times the steps grow from P sigma = 0.1 to 0.5, and the trials that fail at 0.75."""
    loud = toy.scanned("noise", 2, lambda c: c["noise"])
    return median(loud[0.5]) / median(loud[0.1]), lost(loud[0.75])
