"""What Lemmas 2 and 3 have in common: the prompt's direction and norm, the first gradient, and
their claims."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from visprompt.records import Record

from ..pages.plots import log_axes
from ..theory import ap_limits
from .ap_theory import draw_trace
from .ap_theory_runs import (
    COLOURS,
    GAMMA_COUNTS,
    GAMMAS,
    LAWS,
    MAIN,
    OCTAVES,
    SETTLED,
    STEP_COUNT,
    ToyRuns,
    local,
    medians,
)


def lemma_figure(toy: ToyRuns, layer: int) -> Figure:
    """Direction and norm of the trained prompt: over time at the largest P, and against P."""
    tokens = toy.fits[layer]["used"][-1]
    fig, (left, right) = plt.subplots(1, 2, figsize=(7.2, 3.6))
    draw_trace(toy, left, layer, tokens)
    left.set(ylabel="component of the mean prompt; share", title=f"Median trial, P = {tokens}")
    left.legend(loc="lower left", fontsize=8, handlelength=1.2)
    for field, marker, name in (
        ("norm_sum", "o", "sum over tokens"),
        ("frobenius", "s", "Frobenius"),
        ("token_norm", "^", "per token"),
    ):
        norms = toy.trials(MAIN, layer, field)
        fit, mid = ap_limits.slope(norms), medians(norms)
        look = dict(color=COLOURS[layer], alpha={"o": 1, "s": 0.7, "^": 0.4}[marker])
        right.plot(
            mid.keys(), mid.values(), marker + "-", label=f"{name}: {fit['slope']:.2f}", **look
        )
        if field == "norm_sum":
            growth, text = LAWS[layer]
            xs = np.array(list(mid))
            line = mid[xs[0]] * growth(xs) / growth(xs[0])
            right.plot(xs, line, "--", color="0.3", lw=1.2, label=f"paper: {text}")
    log_axes(right, OCTAVES[: 5 if layer == 1 else 4])
    right.set(xlabel="tokens P", ylabel="norm of the trained prompt (with slope)")
    right.set_title("The summed norm grows\nlike P at zero error")
    right.set_ylim(top=right.get_ylim()[1] * 8)
    right.legend(fontsize=8, loc="upper left")
    return fig


def lemma(toy: ToyRuns, artifact: str, layer: int) -> None:
    """Figure and the claims that Lemma 2 (layer 2) and Lemma 3 (layer 1) have in common."""
    toy.page.show(
        artifact,
        lemma_figure(toy, layer),
        evidence="derived",
        records=toy.behind[layer],
        how="Trained until no held-out sample is misclassified; medians over trials.",
        caption="To the first zero error, β = 1. Left: components of the prompt during training. "
        "Right: its norm at zero error.",
        alt="The prompt grows along patterns 1 and 2 and against 3 and 4. At zero error its norm, "
        f"summed over tokens, grows with P to the power "
        f"{ap_limits.slope(toy.trials(MAIN, layer, 'norm_sum'))['slope']:.2f}.",
    )
    if toy.have(artifact, "Exponents of the step size and of 1 + γ", "step", "gamma"):
        toy.judge(
            f"{artifact}.step-exponent",
            toy.powers["1 / eta", layer],
            [toy.runs["step", layer]],
            f"At P = {STEP_COUNT[layer]}.",
        )
        toy.judge(
            f"{artifact}.gamma-exponent",
            toy.powers["1 + gamma", layer],
            [toy.runs["gamma", layer]],
            f"{SETTLED} At P = {GAMMA_COUNTS[layer][-1]}, γ from {GAMMAS[0]} to {GAMMAS[-1]}.",
        )


def gradient_cells():
    """4 P df/d delta at the start, for both layers: without noise at several P, and the mean over
    noise at P = 64."""
    clean = {
        str(h): [
            {"P": n, "rows": ap_limits.first_gradient(h, n).tolist()}
            for n in (32, 64, 128, 256, 512)
        ]
        for h in (1, 2)
    }
    noise = {str(h): ap_limits.first_gradient(h, 64, noise=0.1, draws=400).tolist() for h in (1, 2)}
    return {"clean": clean, "noise": noise}


def gradient(
    toy: ToyRuns, gradients: Record, artifact: str, layer: int, signs: list[list[str]]
) -> None:
    """Table and claims of the first gradient: (A38) and (A39), or (A80) and (A81); `signs` as
    printed."""
    letter, clean = "v" if layer == 1 else "e", gradients.values["clean"][str(layer)]
    rows = []
    for token, name in enumerate(("discriminative token", "other tokens")):
        for how, numbers in (
            ("as printed", signs[token]),
            ("no noise, P = 512", clean[-1]["rows"][token]),
            ("mean over noise, P = 64", gradients.values["noise"][str(layer)][token]),
        ):
            cells = [
                n.replace("-", "−") if isinstance(n, str) else f"{n:.2f}".replace("-0.00", "0.00")
                for n in numbers
            ]
            rows.append(
                {
                    "token": name,
                    "": how,
                    **{f"{letter}{'₁₂₃₄'[i]}": cell for i, cell in enumerate(cells)},
                }
            )
    toy.page.show(
        artifact,
        pd.DataFrame(rows).set_index("token"),
        evidence="derived",
        records=[gradients],
        how="Autograd in float64 at δ = 0, for a sample with v₁ among v₄, γ = −1/2, β = 1.",
        caption="The gradient of f, times 4P. + and − mean Θ(1) with that sign.",
    )
    order = ap_limits.slope({row["P"]: [row["rows"][0][0] / row["P"]] for row in clean})
    toy.judge(f"{artifact}.gradient-order", order, [gradients], f"Local slopes {local(order)}.")
    if layer == 2:  # at layer 1 it depends on beta: see `ap_theory_ends.judge_sign`
        toy.page.judge(
            f"{artifact}.gradient-sign",
            clean[-1]["rows"][0][3],
            evidence="derived",
            records=[gradients],
        )
