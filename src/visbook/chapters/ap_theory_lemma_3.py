"""What the page on AP's lemmas draws for Lemma 3: how the time depends on gamma."""

from itertools import chain

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from ..pages.plots import log_axes, with_interval
from ..theory import ap_limits
from .ap_theory_readings import lost
from .ap_theory_runs import (
    COLOURS,
    GAMMA_COUNTS,
    GAMMAS,
    MAIN,
    NOISE_COUNT,
    OCTAVES,
    STANDARD,
    ToyRuns,
    at,
    constant,
    fitted,
    median,
    medians,
)


def gamma_figure(toy: ToyRuns) -> Figure:
    """Steps against 1 + gamma, and the constant that is left at layer 1."""
    fig, (left, right) = plt.subplots(1, 2, figsize=(7.4, 4))
    kinds = (
        (1, "gamma", 64, "s-", "P = 64"),
        (1, "gamma", 32, "o-", "P = 32"),
        (1, "gamma, a quarter of the step", 32, "v--", "P = 32, a quarter of the step"),
        (1, "gamma, one prompt shared", 32, "D:", "P = 32, one prompt shared"),
        (2, "gamma", 16, "o-", "P = 16"),
    )
    for layer, name, n, style, said in kinds:
        values = toy.scanned(name, layer, lambda c: 1 + c["gamma"], at(n))
        step = toy.runs[name, layer].settings["cells"][0]["step"]
        mid = {g: step * m for g, m in medians(values).items() if np.isfinite(m)}
        label = f"layer {layer}, {said}: {fitted(values).split(' ')[0].replace('-', '−')}"
        left.plot(
            mid.keys(),
            mid.values(),
            style,
            color=COLOURS[layer],
            label=label,
            alpha=0.5 if n == 32 else 1,
        )
    most = GAMMA_COUNTS[1][-1]
    xs = np.array([1 + g for g in GAMMAS])
    start = STANDARD.step * median(toy.scanned("gamma", 1, lambda c: c["gamma"], at(most))[-0.1])
    left.plot(xs, start * xs[-1] / xs, "--", color="0.3", lw=1.2, label="paper, layer 1: −1")
    log_axes(left, [0.1, 0.3, 0.5, 0.9])
    left.set(
        xlabel=r"$1 + \gamma$", ylabel=r"$\eta\,T$", title=r"Layer 2 does not depend on $\gamma$"
    )
    left.set_ylim(top=left.get_ylim()[1] * 50)
    left.legend(fontsize=8, loc="upper right")
    for g, line, shade in zip((-0.9, -0.5, -0.1), (":", "--", "-"), (0.3, 0.6, 1.0)):
        times = {n: constant(v[0], n, g) for n, v in toy.limit_values(1, gamma=g).items()}
        right.plot(
            times.keys(), times.values(), line, color="k", label=rf"symmetric limit, $\gamma={g}$"
        )
        mid = {
            n: median(toy.scanned("gamma", 1, lambda c: c["gamma"], at(n))[g])
            for n in GAMMA_COUNTS[1]
        }
        right.plot(
            mid.keys(),
            [constant(STANDARD.step * m, n, g) for n, m in mid.items()],
            "o",
            color=COLOURS[1],
            alpha=shade,
            label=rf"SGD, $\gamma={g}$",
        )
    right.axhline(32, color="0.6", lw=1)
    right.set_xscale("log")
    right.set_xticks([*OCTAVES, 256], [str(n) for n in [*OCTAVES, 256]])
    right.xaxis.set_minor_locator(NullLocator())
    right.set(
        xlabel="tokens P",
        ylabel=r"$(1+\gamma)\,\eta\,T / P$",
        title="Layer 1's constant tends to 32",
        ylim=(0, 130),
    )
    right.legend(fontsize=8, loc="upper right")
    return fig


def bend(toy: ToyRuns) -> tuple[dict[float, float], float]:
    """In the symmetric limit at the largest P: the constant of layer 1 at both ends of gamma, and
    the exponent of 1 + gamma."""
    most = GAMMA_COUNTS[1][-1]
    times = {gamma: toy.limit_values(1, gamma=gamma)[most] for gamma in (-0.9, -0.5, -0.1)}
    ends = {gamma: constant(times[gamma][0], most, gamma) for gamma in (-0.9, -0.1)}
    return ends, ap_limits.slope({1 + gamma: time for gamma, time in times.items()})["slope"]


def own_shares(toy: ToyRuns) -> dict[float, float]:
    """Median own share of the tokens at zero error by gamma, at layer 1 and the largest P."""
    cells = toy.of_cells("gamma", 1, "own")
    return {c["gamma"]: median(v) for c, v in cells if c["tokens"] == GAMMA_COUNTS[1][-1]}


def lost_near_minus_1(toy: ToyRuns) -> tuple[str, str]:
    """How many trials at gamma = -0.9 reach the cap with the judged step, and with a quarter of
    it."""
    every = [toy.scanned("gamma", 1, lambda c: c["gamma"], at(n)) for n in GAMMA_COUNTS[1]]
    careful = toy.scanned("gamma, a quarter of the step", 1, lambda c: c["gamma"])
    return lost(chain(*(found[-0.9] for found in every))), lost(careful[-0.9])


MISPRINT = (
    "the same misprint, a power of −1 below the fraction bar, is judged as "
    "ap.lemma-2.statement-matches-proof"
)


def judge_noise(toy: ToyRuns) -> None:
    """The exponent of 1 - P sigma against that of the statement and that of the proof."""
    fit, there = toy.powers["1 - P sigma", 1], f"Pσ from 0 to 0.9 at P = {NOISE_COUNT[1]}."
    toy.page.not_judged(
        "ap.lemma-3.noise-statement",
        f"{MISPRINT}. Measured, the iterations follow the power {with_interval(fit)}, with {there}",
    )
    toy.judge("ap.lemma-3.noise-proof", fit, [toy.runs["noise", 1]], f"With {there}")


def judge_background(toy: ToyRuns) -> None:
    """How far the prompt has taken the background patterns at zero error."""
    ends = toy.trials(MAIN, 1, "direction")
    gone = {n: [-(1 + STANDARD.gamma) * (d[2] + d[3]) / 2 for d in v] for n, v in ends.items()}
    last = gone[max(gone)]
    toy.judge(
        "ap.lemma-3.removes-background",
        {"slope": np.median(last), "low": min(last), "high": max(last)},
        toy.behind[1],
        f"At P = {max(gone)}. The interval spans all trials. At P = {min(gone)} it is "
        f"{median(gone[min(gone)]):.2f}.",
    )
