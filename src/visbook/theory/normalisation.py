"""AP's Proposition 1: when an activation prompt gives the same output as tuning a normalisation
layer (Appendix C.2).

Features are `(B, D, P)`: batch, channels, positions. Both layers use the population variance and no
epsilon, as Eq. A3 does; `eps` is there to show what the epsilon of a real layer changes.
"""

from __future__ import annotations

import torch
from torch import Tensor

from visprompt.errors import BadInput


def batch_norm(z: Tensor, scale: Tensor, shift: Tensor, eps: float = 0.0) -> Tensor:
    """BN of Eq. A3: statistics per channel over batch and positions. z `(B, D, P)`, scale and shift
    `(D,)`."""
    mean, deviation = moments(z, (0, 2), eps)
    return scale[:, None] * (z - mean) / deviation + shift[:, None]


def layer_norm(z: Tensor, scale: Tensor, shift: Tensor, eps: float = 0.0) -> Tensor:
    """LN of Eq. A3: statistics per sample and position over channels. z `(B, D, P)`, scale and
    shift `(D,)`."""
    mean, deviation = moments(z, (1,), eps)
    return scale[:, None] * (z - mean) / deviation + shift[:, None]


def moments(z: Tensor, over: tuple[int, ...], eps: float = 0.0) -> tuple[Tensor, Tensor]:
    """Mean and standard deviation over some axes, which are kept with length 1."""
    mean = z.mean(over, keepdim=True)
    return mean, ((z - mean).square().mean(over, keepdim=True) + eps).sqrt()


def tune_batch_norm(x: Tensor, weight: Tensor, prompt: Tensor) -> tuple[Tensor, Tensor]:
    """The scale and shift of a BatchNorm that undo it and add the prompt, as Proposition 1 sets
    them.

    gamma_d = sigma_d and beta_d = w_d delta + mu_d (Eq. A8), for z = weight x.

    Args:
        x: `(B, C, P)`, the convolution's input; weight: `(D, C)`, a 1x1 convolution as in Eq. A5.
        prompt: `(C,)`, the same perturbation at every position.

    Raises:
        BadInput: the prompt differs between positions, which no scale and shift can copy.
    """
    if prompt.ndim != 1:
        raise BadInput(
            "the prompt must be one vector (C,) for all positions; Proposition 1 asks for "
            "equal delta_p"
        )
    mean, deviation = moments(weight @ x, (0, 2))
    return deviation.flatten(), weight @ prompt + mean.flatten()


def prompted_convolution(x: Tensor, weight: Tensor, prompt: Tensor) -> Tensor:
    """AP on a CNN layer, Eq. A6: weight (x + delta). prompt `(C,)` or `(C, P)`; returns
    `(B, D, P)`."""
    return weight @ (x + (prompt[:, None] if prompt.ndim == 1 else prompt))


def tune_layer_norm(z: Tensor, shift: Tensor) -> tuple[Tensor, Tensor]:
    """The scale that undoes a LayerNorm and the prompt that it then equals, as Proposition 1 sets
    them.

    gamma_d = sigma and delta_{p,d} = beta_d - mu_p (Eq. A11), where sigma and mu_p are averages
    over the tokens: exact when all tokens share sigma and mu_p is the same in every sample.

    Args:
        z: `(B, D, P)`; shift: `(D,)`, the LayerNorm's beta.

    Returns:
        scale `(D,)` and prompt `(D, P)`.
    """
    mean, deviation = moments(z, (1,))
    scale = deviation.mean().expand(z.shape[1])
    return scale, shift[:, None] - mean.mean(0)


def nearest_prompt(z: Tensor, tuned: Tensor) -> Tensor:
    """The prompt `(D, P)` that brings z closest to a tuned layer's output in squared error: their
    mean difference."""
    return (tuned - z).mean(0)


def nearest_tuning(z: Tensor, prompted: Tensor) -> tuple[Tensor, Tensor]:
    """The BatchNorm scale and shift `(D,)` that come closest to a prompted output `(B, D, P)` in
    squared error."""
    mean, deviation = moments(z, (0, 2))
    unit = (z - mean) / deviation
    return (unit * prompted).mean((0, 2)), prompted.mean((0, 2))


def padded_convolution_gaps(seed: int = 0) -> tuple[float, float]:
    """Largest gaps at the border and inside for a 3x3 convolution with zero padding, conditions of
    A8 kept.

    Eq. A5 has no neighbours: a padded border sees less of a constant prompt than the middle does.
    """
    g = torch.Generator().manual_seed(seed)
    x = torch.randn(8, 6, 10, 10, generator=g, dtype=torch.float64)
    weight = torch.randn(6, 6, 3, 3, generator=g, dtype=torch.float64) / 54**0.5
    prompt = torch.randn(6, generator=g, dtype=torch.float64)
    z = torch.nn.functional.conv2d(x, weight, padding=1)
    prompted = torch.nn.functional.conv2d(x + prompt[:, None, None], weight, padding=1)
    mean, deviation = moments(z.flatten(2), (0, 2))
    shift = weight.sum((2, 3)) @ prompt + mean.flatten()
    difference = (batch_norm(z.flatten(2), deviation.flatten(), shift).view_as(z) - prompted).abs()
    inside = difference[..., 1:-1, 1:-1]
    return difference.max().item(), inside.max().item()


def features(
    batch: int, channels: int, positions: int, *, one_scale: bool, shared_means: bool, seed: int = 0
) -> Tensor:
    """Synthetic LayerNorm inputs `(B, D, P)` in float64 that hold or break Proposition 1's two
    conditions for ViTs.

    Args:
        one_scale: every token has the same standard deviation over channels (gamma_d / sigma_{b,p}
            = 1 can hold).
        shared_means: mu_{b,p} is the same in every sample b.
    """
    g = torch.Generator().manual_seed(seed)
    z = torch.randn(batch, channels, positions, generator=g, dtype=torch.float64)
    mean, deviation = moments(z, (1,))
    z = (z - mean) / deviation
    if one_scale:
        z = 1.7 * z
    else:
        z = z * torch.empty(batch, 1, positions, dtype=torch.float64).uniform_(
            0.5, 2.0, generator=g
        )
    means = torch.randn(
        1 if shared_means else batch, 1, positions, generator=g, dtype=torch.float64
    )
    return z + means


def proposition_1(
    batch: int = 16, channels: int = 24, positions: int = 36, seed: int = 0
) -> dict[str, float]:
    """Largest absolute difference between AP's and NORM-TUNE's outputs, inside and outside the
    conditions.

    Outside a condition the freer side is fitted to the other in squared error, so that a gap says
    that no choice closes it, not that the formula was the wrong one.
    """
    g = torch.Generator().manual_seed(seed)
    x = torch.randn(batch, channels, positions, generator=g, dtype=torch.float64)
    weight = torch.randn(channels, channels, generator=g, dtype=torch.float64) / channels**0.5
    one, many = (
        torch.randn(channels, *p, generator=g, dtype=torch.float64) for p in ((), (positions,))
    )
    z, gaps = weight @ x, {}

    scale, shift = tune_batch_norm(x, weight, one)
    gaps["BatchNorm, conditions hold"] = gap(
        batch_norm(z, scale, shift), prompted_convolution(x, weight, one)
    )
    prompted = prompted_convolution(x, weight, many)
    gaps["BatchNorm, prompt differs between positions"] = gap(
        batch_norm(z, *nearest_tuning(z, prompted)), prompted
    )
    tuned = batch_norm(z, 1.5 * scale, shift)
    # one vector added after the convolution
    best_output = z + nearest_prompt(z, tuned).mean(1, keepdim=True)
    gaps["BatchNorm, scale differs from sigma"] = gap(tuned, best_output)

    beta = torch.randn(channels, generator=g, dtype=torch.float64)
    for name, one_scale, shared in (
        ("LayerNorm, conditions hold", True, True),
        ("LayerNorm, token scales differ", False, True),
        ("LayerNorm, token means differ between samples", True, False),
    ):
        z = features(
            batch, channels, positions, one_scale=one_scale, shared_means=shared, seed=seed
        )
        scale, prompt = tune_layer_norm(z, beta)
        tuned = layer_norm(z, scale, beta)
        inside = one_scale and shared
        gaps[name] = gap(tuned, z + (prompt if inside else nearest_prompt(z, tuned)))
    z = features(batch, channels, positions, one_scale=True, shared_means=True, seed=seed)
    scale, prompt = tune_layer_norm(z, beta)
    gaps["LayerNorm, conditions hold, epsilon 1e-5"] = gap(
        layer_norm(z, scale, beta, eps=1e-5), z + prompt
    )
    return gaps


def gap(a: Tensor, b: Tensor) -> float:
    """Largest absolute difference."""
    return (a - b).abs().max().item()
