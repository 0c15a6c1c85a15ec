"""What of AP's toy model follows without sampling: attention distances, a symmetric limit,
slopes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
import torch
from torch import Tensor

from visprompt.errors import BadInput, choose

from .ap_toy import (
    SIGNS,
    Settings,
    _attend,
    assemble,
    directions,
    forward,
    gradient,
    own_share,
    patterns,
)


def attention_distance(
    queries: Tensor, keys: Tensor, ties: str = "nearest", rounding: float = 1e-9
) -> Tensor:
    """Mean over queries i of |i - argmax_j <k_j, q_i>|, in tokens (Section 5, the display above
    Lemma 1).

    Args:
        queries, keys: `(..., P, k)`; returns `(...)`.
        ties: among equal best keys take the "nearest" to the query, as the proof does, or the
            "first".
        rounding: scores within this of the best count as equal.
    """
    choose("tie rule", ties, ("nearest", "first"))
    scores = queries @ keys.mT
    best = scores >= scores.amax(-1, keepdim=True) - rounding
    position = torch.arange(scores.shape[-1])
    far = (position.unsqueeze(0) - position.unsqueeze(1)).abs().expand(best.shape)
    if ties == "first":
        chosen = torch.take_along_dim(far, best.int().argmax(-1, keepdim=True), -1).squeeze(-1)
    else:
        chosen = torch.where(best, far, scores.shape[-1]).amin(-1)
    return chosen.double().mean(-1)


def lemma_1(
    tokens: int,
    d_a: int,
    beta: float = 1.0,
    noise: float = 0.0,
    seeds: Sequence[int] = (0,),
    ties: str = "nearest",
) -> tuple[np.ndarray, np.ndarray]:
    """Mean attention distance in layer 1 and in layer 2 of the model without a prompt, one entry a
    seed.

    The samples hold v1 once, at a random position, and v4 elsewhere. P_x exchanges the keys of the
    discriminative token and of a token `d_a` positions away, in both layers, as the proof of Lemma
    1 does.

    Raises:
        BadInput: `d_a` does not fit between two of `tokens` positions.
    """
    if not 1 <= d_a <= tokens - 1:
        raise BadInput(f"d_a must lie between 1 and tokens - 1 = {tokens - 1}, not {d_a}")
    settings = Settings(tokens=tokens, beta=beta, noise=noise, dtype="float64")
    place, epsilon, order = [], [], []
    for seed in seeds:
        g = torch.Generator().manual_seed(seed)
        here = torch.randint(tokens - d_a, (), generator=g).item()
        swapped = torch.arange(tokens)
        swapped[[here, here + d_a]] = swapped[[here + d_a, here]]
        place.append(here)
        order.append(swapped)
        epsilon.append(torch.randn(tokens, settings.dim, generator=g, dtype=torch.float64))
    pair = torch.ones(len(place), dtype=torch.long)  # (v1, v4)
    x, _ = assemble(settings, pair, torch.tensor(place), torch.stack(epsilon))
    z = torch.relu(_attend(x, x @ patterns(settings).T, beta)[1])
    keys = torch.stack(order).unsqueeze(-1)
    return tuple(
        attention_distance(q, torch.take_along_dim(q, keys, 1), ties).numpy() for q in (x, z)
    )


def layer_2_ceiling(tokens: int, beta: float) -> float:
    """The largest P y f that a layer-2 prompt with equal e1 and e2 parts can reach for all four
    pairs.

    With all attention on the discriminative token, f = lambda_1 / 4 with Eq. A18's lambda_1: the
    prompt's own e1 and e2 parts cancel in the read-out. Below 1 the hinge loss of Eq. A60 cannot
    vanish.
    """
    strength = math.exp(beta**2)
    return tokens * strength / (4 * (strength + tokens - 1))


def first_gradient(
    layer: int,
    tokens: int,
    gamma: float = -0.5,
    beta: float = 1.0,
    noise: float = 0.0,
    draws: int = 1,
) -> np.ndarray:
    """4 P df/d delta at delta = 0 for a sample with v1 among v4 (A38, A39 for layer 2; A80, A81 for
    layer 1).

    Without noise it tends, as P grows, to (1, 0, 0, -1) for every token, but for the discriminative
    token in layer 1 to exp(-beta^2) (1, 0, 0, 2 beta^2 - 1): the scores' part outweighs the values'
    once beta^2 > 1/2.

    Args:
        draws: how many samples are averaged; more than one matters with noise only.

    Returns:
        `(2, 4)`: the discriminative token and the mean of the others, as coefficients of v1..v4 or
            e1..e4.
    """
    settings = Settings(
        tokens=tokens, layer=layer, gamma=gamma, beta=beta, noise=noise, dtype="float64"
    )
    g = torch.Generator().manual_seed(0)
    total = np.zeros((2, 4))
    for _ in range(draws):
        epsilon = torch.randn(1, tokens, settings.dim, generator=g, dtype=torch.float64)
        x, _ = assemble(
            settings, torch.ones(1, dtype=torch.long), torch.zeros(1, dtype=torch.long), epsilon
        )
        prompt = torch.zeros(
            1, tokens, settings.dim if layer == 1 else 4, dtype=torch.float64, requires_grad=True
        )
        slopes = torch.autograd.grad(forward(settings, x, prompt).sum(), prompt)[0]
        for kind, part in enumerate((slopes[:, :1], slopes[:, 1:])):
            total[kind] += 4 * tokens * directions(settings, part)[0].numpy()
    return total / draws


def split_rate(tokens: int, beta: float = 1.0) -> float:
    """Rate r at which tokens' layer-2 prompts part along e1 - e2: their difference grows as exp(r
    eta t).

    Linearises the population gradient about a prompt that all tokens share, once e3 and e4 have
    taken the background to the hinge's edge, where right and wrong pairs pull equally: r = beta^2 s
    / (2 P), where s is the mean over tokens of the discriminative pattern's part after layer 1 (Eq.
    A18 and A19), itself of order 1 / P.
    """
    strength = math.exp(beta**2)
    own, others = strength / (strength + tokens - 1), 1 / ((tokens - 1) * strength + 1)
    return beta**2 * (own + (tokens - 1) * others) / tokens / (2 * tokens)


def split_measured(tokens: int, beta: float = 1.0, step: float = 4.0, lean: float = 1e-6) -> float:
    """The rate of `split_rate` from descent on the exact population loss with two groups of tokens.

    The four pairs come with the discriminative token in either half of the tokens; within a half
    gradients are averaged, which is the mean over positions. The halves start to differ by `lean`
    when e3 and e4 have settled.

    Raises:
        BadInput: `tokens` is odd.
    """
    if tokens % 2:
        raise BadInput(f"tokens must be even to have two halves, not {tokens}")
    settings = Settings(tokens=tokens, layer=2, noise=0.0, dim=4, beta=beta, dtype="float64")
    place = torch.tensor([0] * 4 + [tokens - 1] * 4)
    x, y = assemble(
        settings, torch.arange(4).repeat(2), place, torch.zeros(8, tokens, 4, dtype=torch.float64)
    )
    halves = torch.zeros(2, 4, dtype=torch.float64)
    settle, window = math.ceil(24 * tokens / step), math.ceil(4 * tokens**2 / step)
    for t in range(settle + window):
        if t == settle:
            halves += lean * torch.tensor([[1.0, -1.0, 0.0, 0.0], [-1.0, 1.0, 0.0, 0.0]])
        if t == settle + window // 2:  # by now other parts of the push have died out
            middle = halves[0, 0] - halves[1, 0]
        prompt = halves.repeat_interleave(tokens // 2, 0)
        halves = halves - step * gradient(settings, x[None], y[None], prompt[None])[0].view(
            2, -1, 4
        ).mean(1)
        if t < settle:
            halves = halves.mean(0).expand(2, 4).clone()
    return math.log((halves[0, 0] - halves[1, 0]) / middle) / (step * (window - window // 2))


def split_direction(
    tokens: int, start: float = 1e-3, until: float = 0.01, step: float = 4.0
) -> float:
    """Share along e1 - e2 of what tokens' layer-2 prompts do not share, once that is `until` of the
    squared norm.

    Descent on the exact population loss, all places of the discriminative token, from random
    prompts of size `start`.
    """
    settings = Settings(tokens=tokens, layer=2, noise=0.0, dim=4, dtype="float64")
    zeros = torch.zeros(4 * tokens, tokens, 4, dtype=torch.float64)
    place = torch.arange(tokens).repeat(4)
    x, y = assemble(settings, torch.arange(4).repeat_interleave(tokens), place, zeros)
    g = torch.Generator().manual_seed(0)
    prompt = start * torch.randn(1, tokens, 4, generator=g, dtype=torch.float64)
    for t in range(100 * tokens**2):
        prompt = prompt - step * gradient(settings, x[None], y[None], prompt)
        if t > 4 * tokens and own_share(prompt) > until:
            break
    own = (prompt - prompt.mean(1, keepdim=True))[0]
    return ((own[:, 0] - own[:, 1]).square().sum() / 2 / own.square().sum()).item()


def population_flow(
    layer: int,
    token_counts: Sequence[int],
    goal: str = "error",
    gamma: float = -0.5,
    beta: float = 1.0,
    step: float = 4.0,
    max_time: float = 3e6,
) -> list[dict]:
    """Gradient descent on the exact population loss without noise: the expectations of Eq. A40 and
    A82.

    The four pairs count a quarter each. Averaged over the discriminative token's position the
    gradient is the same for every token, so the prompt stays one vector and a sample has two kinds
    of tokens, one of the one and P - 1 of the other. SGD leaves this symmetric path where it is
    unstable, unless its tokens share one prompt.

    Args:
        goal: "error" (all y f > 0) or "margin" (all y f >= 1/P).
        step: eta; SGD's own by default. The end of layer 1's path is a band about 2 / P wide (in a
            coefficient, of which a step is eta / (16 P)); a step that jumps it shortens the time.
        max_time: cap on eta x steps.

    Returns:
        one dict per token count: "tokens", "time" (eta x steps, None at the cap), "token_norm" and
        "direction" at the end, and "trace" rows [time, share of pairs in error, token norm, four
        coefficients].
    """
    choose("goal", goal, ("error", "margin"))
    v = patterns(Settings(dim=4, gamma=gamma, dtype="float64")).numpy()
    x = np.stack([v[[a, b]] for a in (0, 1) for b in (2, 3)])  # (4 pairs, 2 kinds, 4)
    y = np.array([1.0, 1.0, -1.0, -1.0])
    return [_flow(layer, p, x, y, v, goal, beta, step, max_time) for p in token_counts]


def _flow(layer, p, x, y, v, goal, beta, step, max_time) -> dict:
    many = np.array([1.0, p - 1.0])
    read = np.array(SIGNS) / (4 * p)
    delta, t, next_trace, trace = np.zeros(4), 0, 1, []
    while True:
        u1 = x + delta if layer == 1 else x
        values = u1 @ v.T
        a1, o1 = _kinds_attend(u1, values, many, beta)
        u2 = np.maximum(o1, 0) + (delta if layer == 2 else 0)
        a2, o2 = _kinds_attend(u2, u2, many, beta)
        margin = y * (np.maximum(o2, 0) @ read @ many)
        done = bool((margin > 0).all() if goal == "error" else (margin >= 1 / p).all())
        along = np.linalg.solve(v.T, delta) if layer == 1 else delta
        if t >= next_trace or done or t * step >= max_time:
            next_trace = max(t + 1, 1.25 * t)
            row = [t * step, (margin <= 0).mean(), np.linalg.norm(delta), *along]
            trace.append([float(f"{n:.5g}") for n in row])
        if done or t * step >= max_time:
            break
        back = (o2 > 0) * read * ((margin < 1 / p) * -y / 4)[:, None, None] * many[:, None]
        scores, direct = _kinds_back(u2, a2, o2, u2, back, beta)
        grad = scores + direct
        if layer == 1:
            grad = grad * (o1 > 0)
            scores, direct = _kinds_back(u1, a1, o1, values, grad, beta)
            grad = scores + direct @ v
        delta = delta - step * grad.sum((0, 1)) / p
        t += 1
    return {
        "tokens": int(p),
        "time": t * step if done else None,
        "token_norm": float(np.linalg.norm(delta)),
        "direction": along.tolist(),
        "trace": trace,
    }


def _kinds_attend(u, values, many, beta):
    """`ap_toy._attend` where token kind k occurs `many[k]` times: its weight counts that often."""
    scores = beta**2 * u @ u.transpose(0, 2, 1)
    weights = np.exp(scores - scores.max(-1, keepdims=True)) * many
    attention = weights / weights.sum(-1, keepdims=True)
    return attention, attention @ values


def _kinds_back(u, attention, out, values, grad, beta):
    """`ap_toy._attend_back`; `grad` holds the sum over a kind's tokens."""
    inner = (grad @ values.transpose(0, 2, 1) - (grad * out).sum(-1, keepdims=True)) * attention
    return beta**2 * (inner @ u + inner.transpose(0, 2, 1) @ u), attention.transpose(0, 2, 1) @ grad


def of_looks(x: np.ndarray, looks: float) -> float:
    """How far a slope over x may be off since a value lies up to a factor `looks` below the look
    that found it."""
    away = x - x.mean()
    return float(math.log(looks) * np.abs(away).sum() / (2 * (away**2).sum()))


def slope(
    values: Mapping[float, Sequence[float | None]], draws: int = 2000, looks: float = 1.0
) -> dict:
    """Log-log slope of a quantity against P (or whatever the keys are) with a 95 % bootstrap
    interval over trials.

    Fits the median of each P, which censored trials (None, counted as infinite) leave valid while
    they are fewer than half; a P with more is left out and named. Trials are drawn anew within each
    P, so the interval covers their scatter, not a curvature of the line. With one value a P it
    covers nothing and equals the slope.

    Args:
        looks: the factor between two looks at a trial, which the interval takes in too.

    Returns:
        "slope", "low", "high", "used" (P of the fit), "left_out", "censored" (a count per P),
        "local" (slopes between neighbouring P).

    Raises:
        BadInput: fewer than two P are left.
    """
    rng = np.random.default_rng(0)
    arrays = {
        p: np.array([np.inf if n is None else float(n) for n in v]) for p, v in values.items()
    }
    used = [p for p in sorted(arrays) if np.isfinite(np.median(arrays[p]))]
    if len(used) < 2:
        raise BadInput("a slope needs two points at which most trials finished. Raise max_steps.")
    x = np.log(used)
    medians = np.log([np.median(arrays[p]) for p in used])
    again = []
    for p in used:
        sample = rng.choice(arrays[p], (draws, len(arrays[p])))
        again.append(np.log(np.median(sample, axis=1)))
    again = np.stack(again, axis=1)
    again = again[np.isfinite(again).all(1)]
    weights = (x - x.mean()) / ((x - x.mean()) ** 2).sum()
    low, high = np.quantile(again @ weights, [0.025, 0.975])
    blur = of_looks(x, looks)
    return {
        "slope": float(medians @ weights),
        "low": float(low) - blur,
        "high": float(high) + blur,
        "used": used,
        "left_out": [p for p in sorted(arrays) if p not in used],
        "censored": {p: int(np.isinf(a).sum()) for p, a in sorted(arrays.items())},
        "local": [float(s) for s in np.diff(medians) / np.diff(x)],
    }
