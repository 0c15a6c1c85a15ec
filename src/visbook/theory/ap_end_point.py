"""AP's toy model at the proofs' end point, y f >= 1/P on every pair of patterns (A57, A92), without
noise.

Layer 2 has such a point only where `ap_limits.layer_2_ceiling` is 1 or more, which takes
exp(beta^2) > 4 at large P.
"""

from collections.abc import Sequence

import numpy as np
import torch
from scipy.optimize import brentq, minimize_scalar

from visprompt.errors import BadInput

from .ap_limits import first_gradient, layer_2_ceiling, population_flow
from .ap_toy import PAIRS, Settings, assemble, attention, forward, patterns


def four_pairs(settings: Settings) -> tuple[torch.Tensor, torch.Tensor]:
    """The four pattern pairs without noise, the discriminative token first: `(4, P, d)`, labels
    `(4,)`."""
    noise = torch.zeros(PAIRS, settings.tokens, settings.dim, dtype=settings.torch_dtype)
    return assemble(settings, torch.arange(PAIRS), torch.zeros(PAIRS, dtype=torch.long), noise)


def as_prompt(settings: Settings, direction: Sequence[float]) -> torch.Tensor:
    """The prompt `(P, d or 4)` that all tokens share, from its coefficients along the patterns."""
    vector = torch.tensor(direction, dtype=settings.torch_dtype)
    return (vector @ patterns(settings) if settings.layer == 1 else vector).expand(
        settings.tokens, -1
    )


def least_margin(settings: Settings, direction: Sequence[float]) -> float:
    """The smallest P y f over the four pairs; the hinge loss vanishes from 1 on."""
    x, y = four_pairs(settings)
    return settings.tokens * (y * forward(settings, x, as_prompt(settings, direction))).min().item()


def preference(settings: Settings, direction: Sequence[float]) -> float:
    """P times the attention weight on the discriminative token in the prompt's layer, mean over
    pairs and queries."""
    x, _ = four_pairs(settings)
    first = torch.zeros(1, PAIRS, dtype=torch.long)
    return attention(settings, x[None], first, as_prompt(settings, direction)[None])[
        0, settings.layer - 1
    ].item()


def smallest_prompt(tokens: int, beta: float) -> dict:
    """The layer-2 prompt k (e1 + e2) - m (e3 + e4), one for all tokens, of least norm that reaches
    A57.

    Returns:
        "tokens", "token_norm", "direction" (four coefficients) and "preference".

    Raises:
        BadInput: no prompt of this form reaches it at this beta.
    """
    if layer_2_ceiling(tokens, beta) <= 1:
        raise BadInput(
            f"beta = {beta} leaves A57 out of reach at P = {tokens}; give one with "
            f"exp(beta^2) > 4 and more."
        )
    settings = Settings(tokens=tokens, layer=2, dim=4, beta=beta, noise=0.0, dtype="float64")

    def missing(k, m):
        return least_margin(settings, (k, k, -m, -m)) - 1

    def least_k(m):
        return brentq(missing, 0, 4 * tokens, args=(m,)) if missing(0, m) < 0 else 0.0

    m = minimize_scalar(
        lambda m: least_k(m) ** 2 + m**2, bounds=(1, 4 * tokens), options={"xatol": 1e-3 * tokens}
    ).x
    direction = [least_k(m)] * 2 + [-m] * 2
    return told(settings, direction)


def told(settings: Settings, direction: Sequence[float]) -> dict:
    """What is kept of an end point."""
    size = as_prompt(settings, direction)[0].norm().item()
    found = {
        "tokens": settings.tokens,
        "token_norm": size,
        "preference": preference(settings, direction),
    }
    return found | {"direction": [float(part) for part in direction]}


def end_of_descent(layer: int, token_counts: Sequence[int], beta: float) -> list[dict]:
    """`population_flow` to its end point, with "time", "preference" and, for the speed of its
    parts, the "trace"."""
    found = []
    for cell in population_flow(layer, token_counts, "margin", beta=beta):
        settings = Settings(
            tokens=cell["tokens"], layer=layer, dim=4, beta=beta, noise=0.0, dtype="float64"
        )
        found.append(
            {**told(settings, cell["direction"]), "time": cell["time"], "trace": cell["trace"]}
        )
    return found


def fourth_parts(betas: Sequence[float], tokens: int) -> list[list[float]]:
    """[beta, 4P times the v4 part of df/d delta at the discriminative token] at the start of layer
    1 (A80)."""
    return [
        [float(beta), float(first_gradient(1, tokens, beta=beta)[0, 3])]
        for beta in np.asarray(betas)
    ]
