"""The conditions of AP's theorem, lemmas and proposition: what the paper asks, what the runs had,
and whether it is met."""

import math

import numpy as np
import pandas as pd

from visprompt.records import Record

from ..pages.page import Page
from ..theory.ap_limits import layer_2_ceiling
from .ap_theory_ends import BETA, SMALLEST
from .ap_theory_runs import COUNTS, MAIN, STANDARD, ToyRuns, median

SILENT = " (not stated, but the proof needs it)"


def table(rows: list[tuple[str, str, str, str]]) -> pd.DataFrame:
    """A row a condition."""
    return pd.DataFrame(
        rows, columns=["condition", "the paper's value", "this run", "met?"]
    ).set_index("condition")


def show(page: Page, artifact: str, conditions: pd.DataFrame) -> None:
    """The table of conditions, on its page."""
    page.show(
        artifact,
        conditions,
        evidence="derived",
        how="From the settings of the judged runs.",
        caption="What the statement asks for, and whether our run meets it.",
    )


def of_the_model() -> list[tuple[str, str, str, str]]:
    """The conditions that the theorem and both lemmas share."""
    strength = math.exp(STANDARD.beta**2)
    return [
        ("noise", "σ ≤ O(1/P)", f"σ = {STANDARD.noise:g}/P", "yes"),
        ("γ = v₃ · v₄", "in (-1, 0)", f"{STANDARD.gamma:g}", "yes"),
        ("batch size", "B ≥ Ω(1)", f"{STANDARD.batch}", "yes"),
        (
            "attention strength β",
            "Θ(1)",
            f"{STANDARD.beta:g}, and {BETA:g} for end points",
            "yes",
        ),
        (
            "λ₁ < 1/2, that is exp(β²) < P − 1",
            "A18 to A21",
            f"{strength:.2f}, P − 1 from {COUNTS[1][0] - 1}",
            "yes",
        ),
    ]


def lemma_1() -> pd.DataFrame:
    """Lemma 1."""
    return table(
        [
            ("distance of the key", "d_A ≥ 1", "1, 2, P/4, P/2", "yes"),
            of_the_model()[-1],
            ("no noise" + SILENT, "tokens are the patterns", "none", "yes"),
            ("ties" + SILENT, "the nearest of equal keys", "the nearest", "yes"),
        ]
    )


def theorem_1() -> pd.DataFrame:
    """Theorem 1."""
    small, large = COUNTS[2][0], COUNTS[2][-1]
    reach = ", ".join(f"{layer_2_ceiling(n, STANDARD.beta):.2f} at P = {n}" for n in (small, large))
    far = ", ".join(
        f"{layer_2_ceiling(n, BETA):.2f} at P = {n}" for n in (SMALLEST[0], SMALLEST[-1])
    )
    return table(
        [
            *of_the_model(),
            (
                "equal components along e₁ and e₂" + SILENT,
                "in expectation (A40, A82)",
                "two of each pair per batch",
                "yes",
            ),
            (
                "the same components, with freely drawn batches",
                "in expectation (A40, A82)",
                "their difference drifts",
                "no",
            ),
            (
                "generalisation",
                "zero population hinge risk, y f ≥ 1/P",
                "first held-out error of zero",
                "in part",
            ),
            (
                "y f ≥ 1/P can be reached at layer 2" + SILENT,
                "P y f up to 1 or more",
                f"β = {STANDARD.beta:g}: {reach}",
                "no",
            ),
            (
                "y f ≥ 1/P at layer 2, in the runs on the hinge risk",
                "P y f up to 1 or more",
                f"β = {BETA:g}: {far}",
                "yes",
            ),
        ]
    )


def lemma_2(toy: ToyRuns) -> pd.DataFrame:
    """Lemma 2."""
    own = [median(values) for values in toy.trials(MAIN, 2, "own").values()]
    own = f"own share {min(own):.2f} to {max(own):.2f} of the squared norm"
    return table(
        [
            *of_the_model(),
            (
                "all tokens have nearly the same prompt" + SILENT,
                "small scatter about one expectation (A41)",
                own,
                "no",
            ),
            (
                "the same at the end point",
                "one expectation (A40)",
                "one prompt for all tokens",
                "yes",
            ),
            (
                "exp(β²) > 4 for large P" + SILENT,
                "y f ≥ 1/P (A57)",
                f"{math.exp(BETA**2):.2f} at the end point",
                "yes",
            ),
        ]
    )


def lemma_3(toy: ToyRuns) -> pd.DataFrame:
    """Lemma 3."""
    last = toy.trials(MAIN, 1, "direction")
    gone = -(1 + STANDARD.gamma) * np.median([(d[2] + d[3]) / 2 for d in last[max(last)]])
    return table(
        [
            *of_the_model(),
            ("1 − Pσ > 0", "in the bound", f"{1 - STANDARD.noise:g}", "yes"),
            (
                "background removed (A85)",
                "(1 + γ) kμ of Θ(1)",
                f"{gone:.2f} at P = {max(last)}",
                "yes",
            ),
            (
                "β² < 1/2, for A80's sign of v₄" + SILENT,
                "−v₄",
                f"β² = {STANDARD.beta**2:g}",
                "no",
            ),
        ]
    )


def proposition_1(record: Record) -> pd.DataFrame:
    """Proposition 1."""
    whole = f"{record.values['padded']:.1g} where the border is padded with zeros"
    return table(
        [
            ("scale", "γ_d = σ_d; for ViTs γ_d = σ_b,p", "set equal", "yes"),
            ("perturbation, CNN", "one for all positions", "one", "yes"),
            ("token means, ViT", "the same for all samples", "the same", "yes"),
            ("epsilon of the layer" + SILENT, "none", "none", "yes"),
            (
                "no border (A5 has no neighbours)" + SILENT,
                "1x1",
                f"1x1; a 3x3 differs by {whole}",
                "yes",
            ),
        ]
    )
