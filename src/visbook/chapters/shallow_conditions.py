"""What the theorems on the shallow ViT ask for, beside what a run had."""

import math
from collections.abc import Callable, Sequence

import pandas as pd
import torch
from scipy import stats

from visprompt.records import Record

from ..theory.shallow_vit import Settings, initial

RARE = 1e-6  # tau is a bound: so few tokens lie beyond it
EPS_S = 0.5  # Eq. 8's constant is below this
ROUNDING = 1e-5  # of single precision, in a norm of 1


def tau(s: Settings) -> float:
    """Distance from its pattern that no more than one token in a million exceeds; Section 3.2 asks
    for a bound."""
    return s.noise * math.sqrt(stats.chi2.ppf(1 - RARE, s.dim))


def least_relevant(s: Settings) -> float:
    """The right side of Eq. 8 with eps_S at its largest: alpha* must be above this."""
    return s.confusion / (EPS_S * math.exp(-(s.delta + tau(s))) * (1 - (s.sigma + tau(s))))


def boundary(rest: float, s: Settings) -> float:
    """The alpha* from which Eq. 8 holds where alpha* + alpha# is `rest`, as in Figure 1a."""
    ratio = least_relevant(s) / s.confusion
    return ratio * rest / (1 + ratio)


def least_batch(s: Settings) -> float:
    """Eq. 9's bound on B with its constant at 1; infinite where the bracket is not positive."""
    left = s.relevant - math.exp(-(s.delta + tau(s))) * (tau(s) + s.sigma)
    return left**-2 if left > 0 else math.inf


def norms(s: Settings, seeds: Sequence[int]) -> float:
    """The largest spectral norm of W_Q, W_K and W_V at the start, over trials; 1 where Assumption
    1's bound is met."""
    starts = [initial(s, torch.Generator().manual_seed(seed)) for seed in seeds]
    return max(
        torch.linalg.matrix_norm(w[name], 2).max().item()
        for w in starts
        for name in ("query", "key", "value")
    )


def least_eps(s: Settings, samples: float) -> float:
    """The smallest eps that m >= eps^-2 M^2 log N allows, with its constant at 1."""
    return s.patterns * math.sqrt(math.log(samples) / s.neurons)


def span(values: Sequence[float]) -> str:
    """The least and the largest of some numbers, as text."""
    low, high = (
        "∞" if math.isinf(value) else f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
        for value in (min(values), max(values))
    )
    return low if low == high else f"{low} to {high}"


def told(holds: Sequence[bool]) -> str:
    """Whether a condition is met in all settings of a record, or in some."""
    return (
        "yes"
        if all(holds)
        else "no"
        if not any(holds)
        else f"in {sum(holds)} of {len(holds)} settings"
    )


def conditions(record: Record, samples: float = 2000) -> pd.DataFrame:
    """Assumption 1 and Theorem 1's conditions, which Proposition 1 and 2 take over: asked, there,
    met?

    Args:
        samples: N, for the condition on the number of neurons; only its logarithm matters.
    """
    every = [Settings(**cell) for cell in record.settings["cells"]]

    def row(name: str, asked: str, there: Callable, holds: Callable) -> tuple:
        return name, asked, span([there(s) for s in every]), told([holds(s) for s in every])

    largest = {s: norms(s, record.settings["seeds"]) for s in every}
    rows = [
        row(
            "initial norms of W_V, W_K, W_Q",
            "at most 1",
            lambda s: largest[s],
            lambda s: largest[s] <= 1 + ROUNDING,
        ),
        row(
            "σ, of order 1/M",
            f"{span([1 / s.patterns for s in every])}",
            lambda s: s.sigma,
            near_one_over_m,
        ),
        row("δ", "below 0.5", lambda s: s.delta, lambda s: s.delta < 0.5),
        row(
            "τ, as a bound",
            "at most σ and δ",
            tau,
            lambda s: tau(s) <= min(s.sigma, s.delta),
        ),
        row(
            "ε of m ≥ ε⁻² M² log N, constant 1",
            f"below {span([1 - (s.sigma + tau(s)) * s.patterns / math.pi for s in every])}"
            " (Eq. 11)",
            lambda s: least_eps(s, samples),
            lambda s: least_eps(s, samples) + (s.sigma + tau(s)) * s.patterns / math.pi < 1,
        ),
        row(
            "α*, Eq. 8",
            f"at least {span([*map(least_relevant, every)])}",
            lambda s: s.relevant,
            meets_eq_8,
        ),
        row(
            "B, Eq. 9, constant 1",
            f"at least {span([*map(least_batch, every)])}",
            lambda s: s.batch,
            lambda s: s.batch >= least_batch(s),
        ),
        ("N, Eq. 10 or 13", "the constant is not given", "as many as needed", "cannot be said"),
    ]
    return pd.DataFrame(
        rows, columns=["condition", "the paper asks", "our runs", "met?"]
    ).set_index("condition")


def near_one_over_m(s: Settings) -> bool:
    """sigma = O(1 / M), with its constant at 1."""
    return s.sigma <= 1 / s.patterns


def meets_eq_8(s: Settings) -> bool:
    """Whether alpha* is as large as Eq. 8 asks for."""
    return s.relevant >= least_relevant(s)
