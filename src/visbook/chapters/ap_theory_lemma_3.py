"""What the page on AP's lemmas draws for Lemma 3: how the time depends on gamma."""

import matplotlib.pyplot as plt
import numpy as np
from IPython.display import Markdown
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from ..pages.plots import log_axes, with_interval
from ..theory import ap_limits
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
        label = f"layer {layer}, {said}: {fitted(values).split(' ')[0]}"
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
    left.plot(xs, start * xs[-1] / xs, "--", color="0.3", lw=1.2, label="paper, layer 1: -1")
    log_axes(left, [0.1, 0.3, 0.5, 0.9])
    left.set(xlabel=r"$1 + \gamma$", ylabel=r"$\eta\,T$", title="SGD")
    left.set_ylim(top=left.get_ylim()[1] * 50)
    left.legend(fontsize=7.5, loc="upper right")
    for g, line, shade in zip((-0.9, -0.5, -0.1), (":", "--", "-"), (0.3, 0.6, 1.0)):
        times = {n: constant(v[0], n, g) for n, v in toy.limit_values(1, gamma=g).items()}
        right.plot(
            times.keys(), times.values(), line, color="k", label=rf"symmetric limit, $\gamma$ = {g}"
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
            label=rf"SGD, $\gamma$ = {g}",
        )
    right.axhline(32, color="0.6", lw=1)
    right.set_xscale("log")
    right.set_xticks([*OCTAVES, 256], [str(n) for n in [*OCTAVES, 256]])
    right.xaxis.set_minor_locator(NullLocator())
    right.set(
        xlabel="tokens P",
        ylabel=r"$(1+\gamma)\,\eta\,T / P$",
        title="the constant of layer 1",
        ylim=(0, None),
    )
    right.legend(fontsize=7, loc="lower right")
    return fig


def lemma_3_reading(toy: ToyRuns) -> Markdown:
    """What Lemma 3's runs say."""
    end = toy.flows[1, "error", -0.5].values["cells"][-1]
    most = GAMMA_COUNTS[1][-1]
    bend = {g: constant(toy.limit_values(1, gamma=g)[most][0], most, g) for g in (-0.9, -0.1)}
    lost = [
        v
        for n in GAMMA_COUNTS[1]
        for v in toy.scanned("gamma", 1, lambda c: c["gamma"], at(n))[-0.9]
    ]
    bent = ap_limits.slope({1 + g: toy.limit_values(1, gamma=g)[most] for g in (-0.9, -0.5, -0.1)})
    careful = toy.scanned("gamma, a quarter of the step", 1, lambda c: c["gamma"])[-0.9]
    own_at = {
        c["gamma"]: median(v) for c, v in toy.of_cells("gamma", 1, "own") if c["tokens"] == most
    }
    return Markdown(
        "**What to take from it.** Direction and order of the norm are as the proof has "
        "them. The background parts "
        f"decide: in the symmetric limit at P = {end['tokens']} they stop at "
        f"{end['direction'][2]:.2f}, just short of "
        "-1/(1 + gamma) = -2, where v3 and v4 no longer activate their neurons, while v1 "
        "and v2 are still at "
        f"{end['direction'][0]:.2f}. So zero error at layer 1 comes from *removing the "
        f"background*, as the paper's "
        "proof idea says. Attention then prefers the discriminative token by a constant "
        "factor (A90 to A95), which leaves "
        "its weight of order 1/P.\n\n"
        "- *1 + gamma.* A prompt -k (v3 + v4) lowers what the background's neuron sees by "
        "k (1 + gamma) only, so the "
        "walk is 1/(1 + gamma) long at a speed of order eta/P. From gamma = -0.5 up the "
        "exponent is "
        f"{with_interval(toy.powers['1 + gamma from 0.5 on', 1])} at P = {most}; over all "
        f"gamma it is "
        f"{with_interval(toy.powers['1 + gamma', 1])}, with a median trial that depends on "
        f"luck. Three things bend it near "
        f"gamma = -1. *Constants:* in the symmetric limit (1 + gamma) eta T / P at this P "
        f"is {bend[-0.9]:.0f} for "
        f"gamma = -0.9 and {bend[-0.1]:.0f} for -0.1 (exponent {bent['slope']:.2f}); it "
        f"tends to 32 for both, but "
        f"later near -1. With one shared prompt SGD follows that (P = 32: "
        f"{with_interval(toy.powers['1 + gamma, one prompt shared, P = 32', 1])}). *Tokens "
        f"part* here too: the own share at "
        f"zero error is {own_at[-0.9]:.2f} at gamma = -0.9 and {own_at[-0.1]:.1g} at -0.1. "
        f"*Step size:* with a quarter "
        f"of it the exponent is "
        f"{with_interval(toy.powers['1 + gamma, a quarter of the step, P = 32', 1])}, "
        f"flatter than the "
        f"limit, against {with_interval(toy.powers['1 + gamma, P = 32', 1])} at the same P "
        f"with the judged one, at which some "
        f"trials overshoot: {sum(v is None for v in lost)} of {len(lost)} at gamma = -0.9 "
        f"reach the cap, and "
        f"{sum(v is None for v in careful)} of {len(careful)} with a quarter of the step.\n"
        "- *1 - P sigma* stands on opposite sides in A28 and in the proof's last line: "
        "noise cannot both help and "
        f"hinder. It does neither: the exponent is "
        f"{with_interval(toy.powers['1 - P sigma', 1])}. So the proof's line bounds the "
        "need, and the statement's, which falls to nothing at P sigma = 1, does not.\n"
        "- *The first gradient* at the discriminative token is e^{-beta^2} (v1 + (2 "
        "beta^2 - 1) v4) / (4P) for large "
        "P: A80's sign of v4 is right for beta^2 < 1/2; above, the part through the "
        "scores outweighs that through the "
        "values. It does not matter for the bound, since a token is discriminative in one "
        "sample of P only, and "
        "the others' gradient is as A81 has it."
    )


def judge_noise(toy: ToyRuns) -> None:
    """The exponent of 1 - P sigma against that of the statement and that of the proof."""
    for claim in ("noise-statement", "noise-proof"):
        toy.judge(
            f"ap.lemma-3.{claim}",
            toy.powers["1 - P sigma", 1],
            [toy.runs["noise", 1]],
            f"P sigma from 0 to 0.9 at P = {NOISE_COUNT[1]}.",
        )


def judge_background(toy: ToyRuns) -> None:
    """How far the prompt has taken the background patterns at zero error."""
    ends = toy.trials(MAIN, 1, "direction")
    gone = {n: [-(1 + STANDARD.gamma) * (d[2] + d[3]) / 2 for d in v] for n, v in ends.items()}
    last = gone[max(gone)]
    toy.judge(
        "ap.lemma-3.removes-background",
        {"slope": np.median(last), "low": min(last), "high": max(last)},
        toy.behind[1],
        f"At P = {max(gone)}; the interval spans all trials. At P = {min(gone)} it is "
        f"{median(gone[min(gone)]):.2f}.",
    )
