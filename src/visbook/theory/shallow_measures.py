"""What the lemmas of the shallow ViT speak of, measured; and the powers that its figures show."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
import torch
from torch import Tensor

from visprompt.errors import BadInput

from .ap_limits import of_looks
from .shallow_vit import Settings, attend, draw, gradients, initial, patterns


def token_noise(s: Settings) -> float:
    """tau, read as a token's root mean square distance from its pattern: c_0 sqrt(d)."""
    return s.noise * math.sqrt(s.dim)


def lucky(hidden: Tensor, features: Tensor, which: int, margin: float) -> Tensor:
    """Neurons `(T, m)` whose angle to p_l is, by `margin` radians, smaller than that to any other
    feature.

    This is lucky as the proof of Lemma 3 uses it; Definition 2 asks for an angle of at most sigma +
    tau. hidden: `(T, m, d)`; features: `(T, d, M)`, orthonormal columns; which: 0 for p_1, 1 for
    p_2.
    """
    angles = torch.acos(((hidden @ features) / hidden.norm(dim=-1, keepdim=True)).clamp(-1, 1))
    others = [i for i in range(features.shape[-1]) if i != which]
    return angles[..., which] + margin <= angles[..., others].amin(-1)


def growth(
    s: Settings, w: dict[str, Tensor], first: dict[str, Tensor], test: Sequence[Tensor]
) -> dict[str, Tensor]:
    """Lemmas 2 and 4 at one look, `(T,)` each, for one head, one output and one vector a.

    "own" is p_1 for neurons read out with +, p_2 for those with -: the direction that helps the
    margin.
    """
    p, eye = first["features"][:, 0, :, : s.patterns], torch.arange(s.patterns)
    sign, margin = first["output"][:, 0, :, 0], 2 * (s.sigma + token_noise(s))
    start, now = first["hidden"] @ p, w["hidden"] @ p  # (T, m, M)
    near = [lucky(first["hidden"], p, k, margin) for k in (0, 1)]
    still = [lucky(w["hidden"], p, k, margin) for k in (0, 1)]
    # lucky, and read out with their pattern's sign
    mine = (near[0] & (sign > 0)) | (near[1] & (sign < 0))

    def mean(value, which):
        return (value * which).sum(-1) / which.sum(-1).clamp(min=1)

    def own(value):
        return torch.where(sign > 0, value[..., 0], value[..., 1])

    grown, rest = own(now) - own(start), now[..., 2:].abs().amax(-1)
    kept = torch.cat([still[0] & near[0], still[1] & near[1]], -1).sum(-1) / torch.cat(
        near, -1
    ).sum(-1)
    change = (w["value"] - first["value"])[:, 0, :, 0]  # of W_V mu_1: the patterns are unit vectors
    pull = (w["hidden"] * (near[0] & (sign > 0))[..., None]).sum(1)
    norm = {n: w[n][:, 0, :, eye].norm(dim=1) for n in ("query", "key", "value")}
    angle = torch.acos((own(now) / w["hidden"].norm(dim=-1)).clamp(-1, 1))
    return {
        "lucky_own": mean(own(now), mine),
        "lucky_rest": mean(rest, mine),
        "lucky_grown": mean(grown, mine),
        "others_grown": mean(grown, ~mine),
        "lucky_rest_99": torch.stack([r[m].quantile(0.99) for r, m in zip(rest, mine)]),
        "kept": kept,
        "kept_sign": mean(((still[0] & (sign > 0)) | (still[1] & (sign < 0))).to(now.dtype), mine),
        "in_cone": (angle <= margin / 2).to(now.dtype).mean(-1),
        "value_cosine": torch.cosine_similarity(change, pull, dim=-1),
        **{
            f"{n}_{k}": part.mean(1)
            for n in norm
            for k, part in (("1", norm[n][:, :2]), ("rest", norm[n][:, 2:]))
        },
    }


def by_query(
    s: Settings, w: dict[str, Tensor], first: dict[str, Tensor], test: Sequence[Tensor]
) -> dict[str, Tensor]:
    """Eq. 15's sum for the kinds of query token apart: "from_relevant", "from_confusion",
    "from_rest", `(T,)`.

    A label-irrelevant token is a confusion token when it is nearest to one of the discriminative
    patterns.
    """
    x, _, relevant = test
    mass = (attend(s, w, x) * relevant[:, None, :, None, :]).sum(-1).mean(1)  # (T, B, L)
    disc = x.argmax(-1) < s.classes
    kinds = {"relevant": relevant, "confusion": disc & ~relevant, "rest": ~disc & ~relevant}
    return {
        f"from_{n}": (mass * k).sum((1, 2)) / k.sum((1, 2)).clamp(min=1)
        for n, k in kinds.items()
        if k.any()
    }


LOOKS = Settings().check_growth  # the factor between two looks at a trial
KEPT = ("kept_relevant", "loss", "kept_loss", "random_loss")


def by_magnitude(
    s: Settings, w: dict[str, Tensor], first: dict[str, Tensor], test: Sequence[Tensor]
) -> dict[str, Tensor]:
    """What is left of a sample when it keeps as many tokens as are label-relevant, chosen by the
    attention they get.

    `(T,)` each: "kept_relevant", the label-relevant share of those that most attention falls on,
    over all queries; "kept_loss", the test hinge loss with them alone; "random_loss", the same with
    as many at random.
    """
    x, y, relevant = test
    trials, count, size, _ = x.shape
    many = int(relevant[0, 0].sum())
    got = attend(s, w, x).sum(3).mean(1)  # (T, B, L)
    chance = torch.rand(got.shape, generator=torch.Generator().manual_seed(0)).to(got)
    # a sample keeps positions of its own
    every = {name: part.repeat_interleave(count, 0) for name, part in w.items()}

    def loss(stay: Tensor) -> Tensor:
        kept = (
            x.gather(2, stay[..., None].expand(-1, -1, -1, x.shape[-1])).flatten(0, 1).unsqueeze(1)
        )
        at = stay.flatten(0, 1)[:, :, None, None]
        output = every["output"]
        if output.shape[1] == size:
            output = output.gather(1, at.expand(-1, -1, *output.shape[2:]))
        margin = gradients(
            s, {**every, "output": output}, kept, y.flatten(0, 1).unsqueeze(1), only_margin=True
        )[0]
        return torch.relu(1 - margin).view(trials, count).mean(1)

    top = got.topk(many, dim=-1).indices
    return {
        "kept_relevant": relevant.gather(2, top).to(x.dtype).mean((1, 2)),
        "kept_loss": loss(top),
        "random_loss": loss(chance.topk(many, dim=-1).indices),
    }


def attention_bounds(s: Settings, seeds: Sequence[int]) -> float:
    """Share of (relevant query, irrelevant key) weights at the start between phi_n(0) and nu_n(0),
    Definition 1."""
    inside = []
    for seed in seeds:
        g = torch.Generator().manual_seed(seed)
        w = {name: value.unsqueeze(0) for name, value in initial(s, g).items()}
        x, _, relevant = draw(s, g, 8)
        attention = attend(s, w, x.unsqueeze(0))[0, 0]
        pair, n = relevant[:, :, None] & ~relevant[:, None, :], relevant[0].sum().item()
        # tau is a bound
        slack = s.delta + (x - patterns(s)[x.argmax(-1), 0]).norm(dim=-1).max().item()
        low, high = (
            1 / (n * math.exp(1 + sign * slack) + relevant.shape[1] - n) for sign in (1, -1)
        )
        inside.append(((attention >= low) & (attention <= high))[pair].double().mean().item())
    return float(np.mean(inside))


def lucky_shares(patterns: int, dim: int, slack: float, count: int, seed: int) -> dict[str, float]:
    """Shares of `count` Gaussian neurons that are lucky for p_1 at the start (Lemma 3).

    slack: sigma + tau. "definition": angle to p_1 at most slack; "proof": smallest of the angles to
    p_1 .. p_M by 2 slack; "nearest": smallest; "quarter": angle below pi / 4; "bound": Eq. 209 with
    eps_m = 0.
    """
    g = torch.Generator().manual_seed(seed)
    hidden = torch.randn(1, count, dim, generator=g, dtype=torch.float64)
    p = torch.eye(dim, dtype=torch.float64)[None, :, :patterns]
    angle = torch.acos(hidden[..., 0] / hidden.norm(dim=-1))
    found = {
        "definition": angle <= slack,
        "proof": lucky(hidden, p, 0, 2 * slack),
        "nearest": lucky(hidden, p, 0, 0.0),
        "quarter": angle < math.pi / 4,
    }
    shares = {name: which.double().mean().item() for name, which in found.items()}
    return shares | {"bound": (1 - slack * patterns / math.pi) / patterns}


# K of Definition 3: p = 1 is the worst p for the Gaussian and the uniform one, any p for signs
SUB_GAUSSIAN = {
    "Gaussian": math.sqrt(2 / math.pi),
    "uniform": 0.5,
    "signs": 1.0,
}


def hoeffding(count: int, seed: int, samples: int = 200_000) -> dict[str, float]:
    """Largest c of Lemma 1 that sampled tails of weighted sums of `count` variables allow, by
    variable and weights.

    t runs over 0.5 to 4 standard deviations of the sum, as far as 50 of the samples lie beyond it.
    """
    g, found = torch.Generator().manual_seed(seed), {}
    for weights, a in (("equal", torch.ones(count)), ("falling", 1 / torch.arange(1, count + 1))):
        for name, k in SUB_GAUSSIAN.items():
            total = torch.zeros(samples)
            for each in a:
                draws = (
                    torch.randn(samples, generator=g)
                    if name == "Gaussian"
                    else torch.rand(samples, generator=g) * 2 - 1
                )
                total += each * (draws.sign() if name == "signs" else draws)
            cs = []
            for t in np.linspace(0.5, 4, 15) * total.std().item():
                beyond = (total.abs() >= t).sum().item()
                if beyond >= 50:
                    cs.append(
                        (1 - math.log(beyond / samples)) * k**2 * a.square().sum().item() / t**2
                    )
            found[f"{name}, {weights} weights"] = min(cs)
    return found


def needed(samples: Sequence[float | None]) -> float:
    """The smallest N at which half of the trials have succeeded; infinite where too many were
    censored."""
    ordered = sorted(math.inf if n is None else n for n in samples)
    return ordered[(len(ordered) - 1) // 2]


def power(values: Mapping[float, Sequence[float | None]], draws: int = 1000, seed: int = 0) -> dict:
    """Slope of log `needed` against log key with a 95 % interval that resamples the trials of every
    key, and takes in that trials are looked at 5 % apart.

    Args:
        values: key (such as 1 / alpha*) -> one number a trial, None where censored.
    Returns {"slope", "low", "high", "used", "local"}; keys where half of the trials are censored
    are left out.

    Raises:
        BadInput: fewer than two keys are left.
    """
    kept = {key: list(v) for key, v in sorted(values.items()) if math.isfinite(needed(v))}
    if len(kept) < 2:
        raise BadInput("a power needs two values with half of their trials done; raise max_steps.")
    x, rng = np.log(list(kept)), np.random.default_rng(seed)

    def fit(medians):
        return float(np.polyfit(x, np.log(medians), 1)[0])

    found = []
    for _ in range(draws):
        medians = [needed([v[i] for i in rng.integers(len(v), size=len(v))]) for v in kept.values()]
        if all(map(math.isfinite, medians)):
            found.append(fit(medians))
    medians = [needed(v) for v in kept.values()]
    low, high = np.quantile(found, [0.025, 0.975]) if found else (-math.inf, math.inf)
    local = np.diff(np.log(medians)) / np.diff(x)
    return {
        "slope": fit(medians),
        "low": float(low) - of_looks(x, LOOKS),
        "high": float(high) + of_looks(x, LOOKS),
        "used": list(kept),
        "local": local.tolist(),
    }
