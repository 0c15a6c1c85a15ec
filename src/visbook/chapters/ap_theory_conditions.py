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

SILENT = " (not stated; its proof needs it)"
ASKED = "condition, the paper's value, this run, met?"


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
        how="Read off the settings of the judged runs.",
        caption=f"Whether the run is one that the statement speaks of: {ASKED}",
    )


def of_the_model() -> list[tuple[str, str, str, str]]:
    """The conditions that the theorem and both lemmas share."""
    strength = math.exp(STANDARD.beta**2)
    return [
        ("noise", "sigma <= O(1/P)", f"sigma = {STANDARD.noise:g}/P", "yes"),
        ("v3 · v4 = gamma", "in (-1, 0)", f"{STANDARD.gamma:g}", "yes"),
        ("batch size", "B >= Omega(1)", f"{STANDARD.batch}", "yes"),
        (
            "attention strength beta",
            "Theta(1)",
            f"{STANDARD.beta:g}, and {BETA:g} for end points",
            "yes",
        ),
        (
            "lambda_1 < 1/2, so exp(beta^2) < P - 1",
            "A18 to A21",
            f"{strength:.2f}, P - 1 from {COUNTS[1][0] - 1}",
            "yes",
        ),
    ]


def lemma_1() -> pd.DataFrame:
    """Lemma 1."""
    return table(
        [
            ("distance of the key", "d_A >= 1", "1, 2, P/4, P/2", "yes"),
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
                "e1 and e2 level in the prompt" + SILENT,
                "in expectation (A40, A82)",
                "two of each pair a batch",
                "yes",
            ),
            (
                "e1 and e2 level, batches drawn freely",
                "in expectation (A40, A82)",
                "a random walk",
                "no",
            ),
            (
                "generalisation",
                "population hinge risk, y f >= 1/P",
                "first held-out error of zero",
                "in part",
            ),
            (
                "y f >= 1/P within reach at layer 2" + SILENT,
                "P y f up to 1 or more",
                f"beta = {STANDARD.beta:g}: {reach}",
                "no",
            ),
            (
                "the same in the runs on the hinge risk",
                "P y f up to 1 or more",
                f"beta = {BETA:g}: {far}",
                "yes",
            ),
        ]
    )


def lemma_2(toy: ToyRuns) -> pd.DataFrame:
    """Lemma 2."""
    own = [median(values) for values in toy.trials(MAIN, 2, "own").values()]
    own = f"{min(own):.2f} to {max(own):.2f} of the squared norm is not shared"
    return table(
        [
            *of_the_model(),
            (
                "tokens' prompts alike" + SILENT,
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
                "exp(beta^2) > 4 for large P" + SILENT,
                "y f >= 1/P (A57)",
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
            ("1 - P sigma > 0", "in the bound", f"{1 - STANDARD.noise:g}", "yes"),
            (
                "background removed (A85)",
                "(1 + gamma) k mu of Theta(1)",
                f"{gone:.2f} at P = {max(last)}",
                "yes",
            ),
            (
                "beta^2 < 1/2, for A80's sign of v4" + SILENT,
                "-v4",
                f"beta^2 = {STANDARD.beta**2:g}",
                "no",
            ),
        ]
    )


def proposition_1(record: Record) -> pd.DataFrame:
    """Proposition 1."""
    whole = f"{record.values['padded']:.1g} where the border is padded with zeros"
    return table(
        [
            ("scale", "gamma_d = sigma_d; gamma_d = sigma_b,p for ViTs", "set equal", "yes"),
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
