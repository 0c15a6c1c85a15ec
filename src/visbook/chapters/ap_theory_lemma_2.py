"""What the page on AP's lemmas draws for Lemma 2: the second stage, and how tokens part."""

from collections.abc import Iterator

import matplotlib.pyplot as plt
import numpy as np
from IPython.display import Markdown
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from visprompt.records import Record

from ..theory import ap_limits
from .ap_theory_runs import (
    COLOURS,
    COUNTS,
    MAIN,
    OCTAVES,
    STANDARD,
    ToyRuns,
    medians,
)


def second_stage(cells: list[dict]) -> Iterator[tuple[int, list]]:
    """(P, speed of the e1 part per unit of eta t), over the middle half of the symmetric limit's
    time."""
    for cell in cells:
        path = np.array(cell["trace"])
        inside = (path[:, 0] > cell["time"] / 4) & (path[:, 0] < 3 * cell["time"] / 4)
        yield cell["tokens"], [np.polyfit(path[inside, 0], path[inside, 3], 1)[0]]


def foldings(toy: ToyRuns) -> dict[int, list]:
    """{P: eta T r of each trial}: how often a difference between tokens grows by a factor e until
    zero error."""
    return {
        n: [v and STANDARD.step * v * ap_limits.split_rate(n) for v in values]
        for n, values in toy.trials(MAIN, 2, "steps").items()
    }


def split_cells() -> dict:
    """The rate at which tokens' prompts part, from exact descent, and the share of their difference
    along e1 - e2."""
    rates = {str(n): ap_limits.split_measured(n) for n in COUNTS[2][:-1]}
    return {"rates": rates, "along": ap_limits.split_direction(16)}


def split_figure(toy: ToyRuns, split: Record) -> Figure:
    """Own share, rate of parting, and the number of e-foldings until zero error."""
    fig, axes = plt.subplots(1, 3, figsize=(7.6, 3.2))
    shades = plt.cm.viridis(np.linspace(0, 0.9, len(toy.trials(MAIN, 2, "steps"))))
    cells = zip(toy.runs[MAIN, 2].settings["cells"], toy.runs[MAIN, 2].values["cells"])
    for (cell, found), shade in zip(cells, shades):
        n, path = cell["tokens"], np.array(found["trace"])
        axes[0].plot(
            STANDARD.step * ap_limits.split_rate(n) * path[:, 0],
            path[:, 7],
            color=shade,
            label=f"P = {n}",
        )
    axes[0].set(
        yscale="log", xlabel=r"e-foldings $\eta\, r\, t$", ylabel="own share", xlim=(0, None)
    )
    axes[0].set_title("Tokens part at\none speed", fontsize=10)
    axes[0].set_ylim(bottom=axes[0].get_ylim()[0] / 100)  # room for the legend
    axes[0].legend(fontsize=8, handlelength=1, ncols=2, loc="lower right")
    rates = {int(n): r for n, r in split.values["rates"].items()}
    axes[1].plot(
        rates.keys(),
        [n * n * r for n, r in rates.items()],
        "o",
        color=COLOURS[2],
        label="exact descent",
    )
    axes[1].plot(
        COUNTS[2],
        [n * n * ap_limits.split_rate(n) for n in COUNTS[2]],
        "-",
        color="0.3",
        label="closed form",
    )
    axes[1].set(ylabel=r"$P^2 r$", xscale="log", ylim=(0, 0.4), xlabel="tokens P")
    axes[1].set_title("The speed has\na closed form", fontsize=10)
    axes[1].legend(fontsize=8, loc="lower left")
    for n, values in foldings(toy).items():
        axes[2].plot([n] * len(values), values, "o", color=COLOURS[2], alpha=0.3, mew=0, ms=5)
    mid = medians(foldings(toy))
    axes[2].plot(mid.keys(), mid.values(), color=COLOURS[2], lw=2)
    axes[2].set(ylabel="e-foldings until zero error", xscale="log", xlabel="tokens P", ylim=(0, 20))
    axes[2].set_title("The number of\ne-foldings grows slowly", fontsize=10)
    for axis in axes[1:]:
        axis.set_xticks(OCTAVES[:-1], [str(n) for n in OCTAVES[:-1]])
        axis.xaxis.set_minor_locator(NullLocator())
    return fig


def lemma_2_reading(toy: ToyRuns, speeds: dict, split: Record) -> Markdown:
    """What Lemma 2's runs say."""
    ceilings = ", ".join(
        f"{ap_limits.layer_2_ceiling(n, 1.0):.2f} at P = {n}" for n in (COUNTS[2][0], COUNTS[2][-1])
    )
    sizes = list(medians(toy.trials(MAIN, 2, "token_norm")).values())
    turns, rates = (
        medians(foldings(toy)),
        ap_limits.slope({n: [ap_limits.split_rate(n)] for n in toy.fits[2]["used"]}),
    )
    owns = list(medians(toy.trials(MAIN, 2, "own")).values())
    starts = [min(row[7] for row in found["trace"]) for found in toy.runs[MAIN, 2].values["cells"]]
    gaps = [abs(r / ap_limits.split_rate(int(n)) - 1) for n, r in split.values["rates"].items()]
    return Markdown(
        "**What to take from it.** The first gradient and the direction are as predicted: e₁ and "
        "e₂ grow together, e₃ and e₄ fall together. (The e₃ term of A38 and A39 is absent: with γ "
        "< 0 "
        "the noise cannot activate that neuron.) The prompt then goes on differently.\n\n"
        "- *Second stage.* With all four pairs active, the gradients through the *values* cancel "
        "exactly: +1/(4P) from v₁ and −1/(4P) from v₂, on the same neurons. Only those through the "
        "attention scores are left, where A50 goes on with 1/(4P). For the component that all "
        "tokens share they are of order 1/P⁴. The measured speed falls with P to the power "
        f"{speeds['slope']:.2f}, with local slopes towards −4.\n"
        "- *What brings zero error* is that tokens part. At zero error the own share is "
        f"{100 * min(owns):.0f} to {100 * max(owns):.0f} % of the prompt's squared norm: some "
        "tokens lean towards e₁, others towards e₂ "
        f"({100 * split.values['along']:.0f} % of a small difference lies along e₁ − e₂ at P = "
        "16). They part at a speed r η that is within "
        f"{100 * max(gaps):.0f} % of the closed form. Zero error comes after "
        f"{min(turns.values()):.0f} to {max(turns.values()):.0f} e-foldings.\n"
        f"- *The exponent.* Between P = {toy.fits[2]['used'][0]} and {toy.fits[2]['used'][-1]} the "
        f"speed r falls with P to the power {rates['slope']:.2f}, towards −2. The number of "
        f"e-foldings grows to the power {ap_limits.slope(foldings(toy))['slope']:.2f}; together "
        f"they make {toy.fits[2]['slope']:.2f}. More e-foldings are needed because tokens part "
        f"from a smaller difference: the lowest own share of the median trial is {starts[0]:.0e} "
        f"at P = "
        f"{toy.fits[2]['used'][0]} and {starts[-1]:.0e} at P = {toy.fits[2]['used'][-1]}. This "
        "points to P² times a logarithm, as in the bound, by another route.\n"
        f"- *Norm.* At the first zero error a token's prompt has norm {min(sizes):.2f} to "
        f"{max(sizes):.2f} at every P. The paper's end point, y f ≥ 1/P in A57, lies further, and "
        "β = 1 cannot reach it: with all attention on the discriminative token and equal e₁ and e₂ "
        "components, P y f is at most P exp(β²) / (4 (exp(β²) + P − 1)), that is "
        f"{ceilings}. The read-out's factor of 1/4, a constant in the bounds, decides this: at "
        "large P it takes exp(β²) > 4. Where the end point exists, its norm and attention are as "
        "in the paper (figure above).\n"
        "- *γ* does not matter, as A25 says: with γ < 0 the first layer's ReLU silences the other "
        "background neuron."
    )
