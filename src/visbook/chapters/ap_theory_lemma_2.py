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
        yscale="log", xlabel=r"e-foldings $\eta\, r\, t$", title="own share", xlim=(0, None)
    )
    axes[0].legend(fontsize=7, handlelength=1, ncols=2, loc="lower right")
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
    axes[1].set(title=r"rate: $P^2 r$", xscale="log", ylim=(0, 0.4), xlabel="tokens P")
    axes[1].legend(fontsize=8, loc="lower left")
    for n, values in foldings(toy).items():
        axes[2].plot([n] * len(values), values, "o", color=COLOURS[2], alpha=0.3, mew=0, ms=5)
    mid = medians(foldings(toy))
    axes[2].plot(mid.keys(), mid.values(), color=COLOURS[2], lw=2)
    axes[2].set(title="e-foldings until zero error", xscale="log", xlabel="tokens P", ylim=(0, 20))
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
        "**What to take from it.** The first gradient and the direction are as predicted: "
        "e1 and e2 grow together, e3 "
        "and e4 fall together. (The e3 term of A38 and A39 is absent: with gamma < 0 the "
        "noise cannot wake that "
        "neuron.) How the prompt goes on is another matter:\n\n"
        "- *Second stage.* With all four pairs active the gradients through the *values* "
        "cancel exactly (+1/(4P) from "
        "v1, -1/(4P) from v2, on the same neurons), and only those through the attention "
        "scores are left, where A50 "
        "goes on with 1/(4P). For what all tokens share they are of order 1/P^4: 1/P "
        "times the covariance of a "
        "sample's features, of which one in P differs from the others, by 1/P. The "
        "measured speed falls as "
        f"P^{speeds['slope']:.2f}, with local slopes towards -4.\n"
        f"- *What makes zero error* is that tokens part: at zero error "
        f"{100 * min(owns):.0f} to {100 * max(owns):.0f} "
        "% of the prompt's squared norm is not shared; some tokens lean to e1, others to e2 "
        f"({100 * split.values['along']:.0f} % of a small difference lies along e1 - e2 at "
        f"P = 16). The rate is r eta, "
        f"within {100 * max(gaps):.0f} % of the closed form, and zero error comes after "
        f"{min(turns.values()):.0f} to "
        f"{max(turns.values()):.0f} e-foldings. Between P = {toy.fits[2]['used'][0]} and "
        f"{toy.fits[2]['used'][-1]} the rate "
        f"falls as P^{rates['slope']:.2f}, towards P^-2; the number of e-foldings grows as "
        f"P^{ap_limits.slope(foldings(toy))['slope']:.2f}, the rest of "
        f"{toy.fits[2]['slope']:.2f}. It grows because tokens "
        f"part from a smaller start: the own share of the median trial is {starts[0]:.0e} "
        f"at its lowest at P = "
        f"{toy.fits[2]['used'][0]}, {starts[-1]:.0e} at P = {toy.fits[2]['used'][-1]}. "
        f"This points to P^2 times a logarithm, "
        "as in the bound, by another route.\n"
        f"- *Norm.* At the first zero error a token's prompt has norm {min(sizes):.2f} to "
        f"{max(sizes):.2f} at every P. That "
        "is not the paper's end point, y f >= 1/P in A57, which beta = 1 cannot reach: "
        "with all attention on the "
        "discriminative token and equal e1 and e2 parts, P y f is at most P exp(beta^2) / "
        "(4 (exp(beta^2) + P - "
        f"1)), {ceilings}. The read-out's factor 1/4, constant in the bounds, decides it: "
        f"exp(beta^2) > 4 is needed at "
        "large P. Where the end point exists, its norm and attention are as the paper has "
        "them (figure above): a score "
        "moves by beta^2 (lambda_1 - lambda_2) (k + m), of order (k + m)/P, and must make "
        "up for log P.\n"
        "- *gamma* does not matter, as A25 has it: with gamma < 0 the first layer's ReLU "
        "silences the other background "
        "neuron."
    )
