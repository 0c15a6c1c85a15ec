"""AP's theory at the proofs' end point y f >= 1/P, where the hinge risk of Section 5 is zero, and
against beta."""

import matplotlib.pyplot as plt
import numpy as np
from IPython.display import Markdown
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from visprompt.records import Record, recorded

from ..pages.plots import log_axes, with_interval
from ..theory import ap_end_point, ap_limits
from .ap_theory_runs import (
    COLOURS,
    LAWS,
    LOOKS,
    STANDARD,
    ToyRuns,
    fitted,
    local,
    median,
    medians,
    toy_record,
    toys,
)

# exp(beta^2) = 9.5: above 4, so that layer 2 has an end point, and below P - 1 from P = 12 on
# (Lemma 1)
BETA = 1.5
HINGE = {1: ([12, 16, 24, 32], 4_000), 2: ([12, 16], 6_000)}  # layer: P, cap
BETAS = [0.5, 0.6, 0.8, 1.0, 1.25, 1.5]
BETA_COUNT = {1: 16, 2: 8}
SEEDS = list(range(6))
DESCENT = {1: [12, 16, 24, 32, 64, 128], 2: [12, 16, 24, 32]}
SMALLEST = [12, 16, 24, 32, 64, 128, 256]
FEWEST = 4  # numbers of tokens by which a law of growth is judged
LARGE = 32  # from here on the law of the norm and of attention is judged


def hinge_run(layer: int) -> Record:
    """SGD until every held-out sample has y f >= 1/P, batches drawn freely."""
    counts, cap = HINGE[layer]
    return toy_record(
        toys(layer, counts, beta=BETA, goal="margin", balanced=False, max_steps=cap),
        SEEDS,
        False,
        True,
    )


def beta_run(layer: int) -> Record:
    """SGD to its first zero held-out error, at several beta."""
    cells = [toys(layer, [BETA_COUNT[layer]], beta=beta, max_steps=20_000)[0] for beta in BETAS]
    return toy_record(cells, SEEDS, False, True)


def end_cells() -> dict:
    """End points without noise: of descent in both layers, and of the least norm in layer 2; and
    the v4 part of A80."""
    return {
        "descent": {
            str(h): ap_end_point.end_of_descent(h, counts, BETA) for h, counts in DESCENT.items()
        },
        "smallest": [ap_end_point.smallest_prompt(n, BETA) for n in SMALLEST],
        "fourth": ap_end_point.fourth_parts(np.linspace(0.3, 1.5, 25), 512),
    }


def end_record() -> Record:
    """The record of the end points."""
    return recorded(
        "ap-end-point",
        {"beta": BETA, "layer_1": DESCENT[1], "layer_2": DESCENT[2], "smallest": SMALLEST},
        end_cells,
    )


def of_ends(cells: list[dict], field: str, least: int = 0) -> dict[int, list]:
    """{P: [value]} of some end points; norms are summed over tokens."""
    times = {"token_norm": lambda cell: cell["tokens"]}.get(field, lambda cell: 1)
    return {
        cell["tokens"]: [times(cell) * cell[field]] for cell in cells if cell["tokens"] >= least
    }


def hinge_figure(runs: dict[int, Record], ends: Record) -> Figure:
    """Samples until y f >= 1/P: SGD, and descent on the population loss, beside the theorem's
    growth."""
    fig, axis = plt.subplots(figsize=(7, 3.8))
    for layer, record in runs.items():
        steps = steps_of(record)
        for n, values in steps.items():
            done = [STANDARD.batch * v for v in values if v is not None]
            axis.plot([n] * len(done), done, "o", color=COLOURS[layer], alpha=0.4, ms=5, mew=0)
        reached = (
            f"{sum(v is not None for vs in steps.values() for v in vs)} of "
            f"{sum(map(len, steps.values()))} trials"
        )
        axis.plot(
            [], [], "o", color=COLOURS[layer], label=f"SGD, layer {layer}: {reached} reach it"
        )
        times = of_ends(ends.values["descent"][str(layer)], "time")
        xs = np.array(list(times))
        samples = np.array([STANDARD.batch * v[0] / STANDARD.step for v in times.values()])
        slope = ap_limits.slope(times)["slope"]
        axis.plot(
            xs,
            samples,
            ":",
            color=COLOURS[layer],
            lw=2,
            label=f"symmetric limit, layer {layer}: slope {slope:.2f}",
        )
        growth, name = LAWS[layer]
        line = samples[0] * growth(xs) / growth(xs[0])
        axis.plot(xs, line, "--", color="0.3", lw=1.2)
        axis.text(xs[-1] * 1.03, line[-1], name, va="center", fontsize=10)
    log_axes(axis, DESCENT[1])
    axis.set(xlabel="tokens P", ylabel=r"samples until $y f \geq 1/P$", xlim=(None, 180))
    axis.legend(fontsize=8, loc="upper left")
    axis.set_title("To zero hinge risk, the symmetric limit outgrows the paper's laws")
    axis.set_ylim(top=axis.get_ylim()[1] * 20)
    return fig


def steps_of(record: Record) -> dict[int, list]:
    """{P: steps a trial} of a curve."""
    return {
        cell["tokens"]: found["steps"]
        for cell, found in zip(record.settings["cells"], record.values["cells"])
    }


def judge_hinge(toy: ToyRuns, runs: dict[int, Record], ends: Record) -> None:
    """Growth of the samples until the hinge risk is zero, both layers."""
    fit = ap_limits.slope(steps_of(runs[1]), looks=LOOKS)  # as `fitted` has it
    descent = {h: ap_limits.slope(of_ends(ends.values["descent"][str(h)], "time")) for h in (1, 2)}
    note = (
        f"P from {fit['used'][0]} to {fit['used'][-1]}, local slopes {local(fit)}. In the "
        f"symmetric limit the slope is {descent[1]['slope']:.2f} up to P = "
        f"{descent[1]['used'][-1]} (local "
        f"{local(descent[1])})."
    )
    toy.judge("ap.theorem-1.layer-1-hinge", fit, [runs[1]], note)
    values = [v for trials in steps_of(runs[2]).values() for v in trials]
    reached = sum(v is not None for v in values)
    note = (
        f"SGD reaches it in only {reached} of {len(values)} trials within {HINGE[2][1]:,} steps. "
        f"The expected prompt of A40, one for all tokens and without noise, needs times that grow "
        f"with slope {descent[2]['slope']:.2f} for P from {descent[2]['used'][0]} to "
        f"{descent[2]['used'][-1]} (local {local(descent[2])})."
    )
    sgd = {n: trials for n, trials in steps_of(runs[2]).items() if np.isfinite(median(trials))}
    if len(sgd) < FEWEST:
        toy.page.not_judged("ap.theorem-1.layer-2-hinge", note)
    else:
        fit = ap_limits.slope(sgd, looks=LOOKS)
        toy.judge("ap.theorem-1.layer-2-hinge", fit, [ends, runs[2]], note)


def judge_variants(toy: ToyRuns) -> None:
    """The theorem's statements where batches are drawn freely, and where the zero error must
    last."""
    free, lasting = "batches drawn freely", "zero error that lasts to 1.25 T"
    for layer, name, slug in ((1, free, "free"), (2, free, "free"), (1, lasting, "lasting")):
        fit = ap_limits.slope(toy.trials(name, layer, "steps"), looks=LOOKS)
        lost, claim = sum(fit["censored"].values()), f"ap.theorem-1.layer-{layer}-{slug}"
        note = f"P from {fit['used'][0]} to {fit['used'][-1]}; {lost} trials reach the cap."
        if len(fit["used"]) < FEWEST:
            few = f"{len(fit['used'])} values of P are too few to judge a growth law; the slope is"
            toy.page.not_judged(claim, f"{few} {with_interval(fit)}. {note}")
        else:
            toy.judge(claim, fit, [toy.runs[name, layer]], note)
    steps = {h: toy.trials(free, h, "steps") for h in (1, 2)}
    shared = max(set(steps[1]) & set(steps[2]))
    one, two = (np.log([np.inf if v is None else v for v in steps[h][shared]]) for h in (1, 2))
    apart = {
        "slope": np.median(two) - np.median(one),
        "low": two.min() - one.max(),
        "high": two[np.isfinite(two)].max() - one.min(),
    }
    note = (
        f"At P = {shared}. The interval spans the extreme trials of both layers that "
        f"end before the cap."
    )
    toy.judge(
        "ap.theorem-1.layer-2-needs-more-free", apart, [toy.runs[free, h] for h in (1, 2)], note
    )


def end_figure(ends: Record) -> Figure:
    """Norm and attention at the end point, both layers."""
    fig, (left, right) = plt.subplots(1, 2, figsize=(7.4, 3.8))
    descent = ends.values["descent"]
    for cells, layer, style, name in (
        (ends.values["smallest"], 2, "o-", "layer 2, least norm"),
        (descent["2"], 2, "x", "layer 2, descent"),
        (descent["1"], 1, "s-", "layer 1, descent"),
    ):
        for axis, field in ((left, "token_norm"), (right, "preference")):
            values = of_ends(cells, field)
            label = f"{name}: {ap_limits.slope(values)['slope']:.2f}"
            axis.plot(
                values.keys(),
                [v[0] for v in values.values()],
                style,
                color=COLOURS[layer],
                label=label,
            )
    xs, norms = np.array(SMALLEST), of_ends(ends.values["smallest"], "token_norm")
    law = LAWS[2][0](xs) * norms[xs[-1]][0] / LAWS[2][0](xs[-1])
    left.plot(xs, law, "--", color="0.3", lw=1.2, label=LAWS[2][1])
    right.plot(xs, xs, "--", color="0.3", lw=1.2, label="all attention: P")
    for axis, told in (
        (left, "norm, summed over tokens"),
        (right, "P × attention on the\ndiscriminative token"),
    ):
        log_axes(axis, SMALLEST[::2])
        axis.set(xlabel="tokens P", ylabel=told)
        axis.set_ylim(top=axis.get_ylim()[1] * 8)
        axis.legend(fontsize=8, loc="upper left")
    left.set_title("Norm: layer 2 nears $P^2\\log P$")
    right.set_title("Only layer 2 concentrates attention")
    return fig


def judge_ends(toy: ToyRuns, ends: Record, layer: int) -> None:
    """Norm and attention of the lemma of a layer, at its end point."""
    if layer == 2:
        for claim, field in (("norm", "token_norm"), ("attention", "preference")):
            fit = ap_limits.slope(of_ends(ends.values["smallest"], field, LARGE))
            note = f"Local slopes {local(fit)}. exp(β²) > 4, so the end point exists."
            toy.judge(f"ap.lemma-2.{claim}", fit, [ends], note)
        return
    cells = ends.values["descent"]["1"]
    fit = ap_limits.slope(of_ends(cells, "token_norm"))
    toy.judge(
        "ap.lemma-3.norm",
        fit,
        [ends],
        f"P from {fit['used'][0]} to {fit['used'][-1]}, local slopes {local(fit)}.",
    )
    weights = {n: v[0] for n, v in of_ends(cells, "preference").items()}
    told = {
        "slope": median([*weights.values()]),
        "low": min(weights.values()),
        "high": max(weights.values()),
    }
    note = (
        f"The interval spans P from {min(weights)} to {max(weights)}. The weight itself "
        f"stays of order 1/P."
    )
    toy.judge("ap.lemma-3.attention", told, [ends], note)


def beta_figure(runs: dict[int, Record], ends: Record) -> Figure:
    """The v4 part of the first gradient against beta, and steps to the first zero error."""
    fig, (left, right) = plt.subplots(1, 2, figsize=(7.2, 3.4))
    left.plot(*np.array(ends.values["fourth"]).T, color=COLOURS[1], lw=2)
    left.axhline(0, color="0.4", lw=1)
    left.set(
        xlabel=r"$\beta$", ylabel=r"$4P$ × the $v_4$ component", title="The gradient's sign turns"
    )
    for layer, record in runs.items():
        mid = medians(
            {
                c["beta"]: f["steps"]
                for c, f in zip(record.settings["cells"], record.values["cells"])
            }
        )
        right.plot(
            mid.keys(),
            mid.values(),
            "o-",
            color=COLOURS[layer],
            label=f"layer {layer}, P = {BETA_COUNT[layer]}",
        )
    right.set_yscale("log")
    right.set(
        xlabel=r"$\beta$", ylabel="median steps to zero error", title="Strong attention is faster"
    )
    right.set_yticks([100, 200, 500, 1000, 2000], ["100", "200", "500", "1,000", "2,000"])
    right.yaxis.set_minor_locator(NullLocator())
    right.legend(fontsize=8)
    for axis in (left, right):
        axis.axvline(np.sqrt(0.5), color="0.5", ls=":", lw=1)
        axis.text(
            np.sqrt(0.5) + 0.02,
            0.02,
            r"$\sqrt{1/2}$",
            fontsize=8.5,
            transform=axis.get_xaxis_transform(),
        )
    return fig


def judge_sign(toy: ToyRuns, ends: Record) -> None:
    """The sign of the v4 part in A80, for beta below the square root of 1/2."""
    parts = {beta: part for beta, part in ends.values["fourth"] if beta < np.sqrt(0.5)}
    told = {
        "slope": median([*parts.values()]),
        "low": min(parts.values()),
        "high": max(parts.values()),
    }
    above = dict(ends.values["fourth"])[1.0]
    note = (
        f"The interval spans β from {min(parts):.2f} to {max(parts):.2f}, P = 512. "
        f"Above β = √(1/2) the sign turns: at "
    )
    toy.judge("ap.lemma-3.gradient-sign", told, [ends], f"{note}β = 1 it is {above:+.2f}.")


def hinge_reading(toy: ToyRuns, runs: dict[int, Record], ends: Record) -> Markdown:
    """What the hinge risk adds to the classification error."""
    one = ap_limits.slope(of_ends(ends.values["descent"]["1"], "time"))
    lasting = [
        v
        for trials in toy.trials("zero error that lasts to 1.25 T", 2, "steps").values()
        for v in trials
    ]
    return Markdown(
        "**What to take from it.**\n\n- *Hinge risk, layer 1.* SGD's samples grow with the "
        f"exponent {fitted(steps_of(runs[1]))}, too wide an interval to judge. In the symmetric "
        f"limit the "
        f"local slopes are {local(one)}. They rise because the last part of the margin is slow.\n"
        f"- *Hinge risk, layer 2.* With β = {STANDARD.beta:g} the end point does not exist: the "
        "loss never vanishes, and zero error does not last "
        f"({sum(v is None for v in lasting)} of {len(lasting)} trials lose it). We do not hold "
        f"that against the theorem. With β = {BETA} the end point exists, but the expected prompt "
        f"moves "
        "towards it at the speed of the second stage. That is of order 1/P⁴ (Lemma 2), much slower "
        "than P² log P steps would allow.\n- *Freely drawn batches* keep both bounds, but not the "
        "gap between the layers: layer 2 reaches its first zero error when the drifting difference "
        "between e₁ and e₂ happens to pass zero."
    )
