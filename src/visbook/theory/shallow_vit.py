"""The shallow ViT of *A Theoretical Understanding of Shallow Vision Transformers*, Eq. 1, on its
own data.

Data (Section 3.2): a sample holds `tokens` noisy copies of M orthonormal patterns. Pattern 1 or 2
wins the majority vote and decides the label (the label-relevant tokens, share alpha*); the loser's
are the confusion tokens (share alpha#); the rest is spread evenly over patterns 3..M. With four
classes (Appendix G.1) there are four discriminative patterns, and the confusion pattern is any
other of them. With `members` above 1 (G.2) a pattern is a set of unit vectors and a token a noisy
copy of any of its set.

Model (Eq. 1): F = 1/|S| sum_l a^T Relu(W_O W_V X softmax(X^T W_K^T W_Q x_l)); a is fixed, the four
matrices are trained by mini-batch SGD on the hinge loss max(0, 1 - y F). What the text leaves open
is a field of `Settings`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import reduce
from operator import add

import torch
from torch import Tensor

from visprompt.errors import BadInput, choose

NAMES = ("query", "key", "value", "hidden")  # W_Q, W_K, W_V, W_O
FAR = 3  # an error that is drawn in again is first so many times as large
# one row a class: Section 2 and G.1
LABELS = {2: [[1], [-1]], 4: [[1, 1], [1, -1], [-1, 1], [-1, -1]]}


@dataclass(frozen=True)
class Settings:
    """Everything that decides a trial besides its seed. Raises BadInput for what the model does not
    allow."""

    # alpha*; this and alpha# as for Figure 4, the one setting printed in full
    relevant: float = 0.5
    confusion: float = 0.05  # alpha#
    tokens: int = 50  # |S_n| before anything is dropped
    patterns: int = 5  # M
    dim: int = 10  # d = m_a = m_b
    neurons: int = 1000  # m
    noise: float = 0.01  # c_0: every token gets Gaussian noise of this standard deviation per entry
    sigma: float = 0.1  # how far W_V(0) leads patterns from orthonormal p_l (Assumption 1)
    delta: float = 0.2  # the same of W_K(0) and W_Q(0)
    xi: float = 0.01  # standard deviation of W_O(0), Section 4.1 (Appendix C has 1/sqrt(M))
    # "printed": W_Q = W_K = (delta/c_0)^2 I, W_V = (sigma/c_0)^2 U; "root": unsquared
    start: str = "assumption"
    fractions: str = "same"  # as Section 4.1 has it; "drawn": a sample's counts are multinomial
    # one vector a for all tokens; "own": an a_(l) for every position, as Eq. 1 has it
    output: str = "shared"
    # "frozen": Proposition 1; "none": every token sees itself alone (1 x 1 CNN)
    attention: str = "trained"
    heads: int = 1  # G.3: heads side by side, each with its own W_Q, W_K, W_V
    skip: bool = False  # G.4: x_l is added to the attended value
    classes: int = 2  # G.1: 2 or 4
    members: int = 1  # G.2: vectors of a pattern set
    # Delta: largest distance within a set of two or more; half of kappa, that between two sets
    spread: float = 0.7
    noisy: float = 0.0  # share of tokens that get noise of size `loud` instead
    # about half a pattern per entry: a token that no longer shows its pattern well
    loud: float = 0.5
    drop: float = 0.0  # share of the tokens removed before training and testing
    drop_what: str = "irrelevant"  # which: "irrelevant", "noisy" or "any"
    step: float = 0.5  # eta
    batch: int = 8  # B
    # N, trained on in shuffled epochs; 0: one pass, every batch is new, so N = B x steps
    samples: int = 0
    max_steps: int = 400  # the cap; a trial that reaches it is reported as censored, never dropped
    goal: float = 1e-3  # a trial succeeds at a test hinge loss below this, Section 4.1
    run_on: bool = False  # go on to the cap after success, for pictures over time
    # held-out samples, labels in turn; with equal fractions they differ by noise alone
    test_size: int = 16
    check_growth: float = 1.05  # the test loss is looked at at steps 1.05^k: a time is known to 5 %
    dtype: str = "float32"  # tests use float64

    def __post_init__(self):
        choose("start", self.start, ("assumption", "printed", "root"))
        choose("fractions", self.fractions, ("same", "drawn"))
        choose("output", self.output, ("shared", "own"))
        choose("attention", self.attention, ("trained", "frozen", "none"))
        choose("drop_what", self.drop_what, ("irrelevant", "noisy", "any"))
        choose("dtype", self.dtype, ("float32", "float64"))
        if self.classes not in LABELS:
            raise BadInput(f"classes must be 2 or 4, not {self.classes!r}")
        most = {"irrelevant": 1 - self.relevant, "noisy": self.noisy, "any": 1 - 1 / self.tokens}[
            self.drop_what
        ]
        rules = (
            (self.tokens >= 2, "tokens must be at least 2"),
            (
                self.patterns > self.classes,
                "patterns must exceed classes: one pattern must be non-discriminative",
            ),
            (
                self.dim >= self.patterns,
                "dim must be at least patterns: the patterns are orthonormal",
            ),
            (
                self.members >= 1 and 0 < self.spread < math.sqrt(2),
                "members must be at least 1, and spread lie between 0 and sqrt(2), the "
                "distance between two sets",
            ),
            (
                self.members == 1 or self.dim >= 2 * self.patterns,
                "dim must be at least twice patterns with members: every set of vectors "
                "lies in a plane of its own",
            ),
            (self.confusion >= 0, "confusion must not be negative"),
            (
                round(self.relevant * self.tokens) > round(self.confusion * self.tokens),
                "relevant must exceed confusion by a token at least: the majority decides "
                "the label",
            ),
            (self.relevant + self.confusion <= 1 + 1e-9, "relevant + confusion must not exceed 1"),
            (
                min(self.noise, self.sigma, self.delta, self.xi, self.loud) >= 0,
                "scales must not be negative",
            ),
            (
                self.start == "assumption" or self.noise > 0,
                f"start {self.start!r} divides by noise: make it positive",
            ),
            (0 <= self.noisy <= 1, "noisy must lie in [0, 1]"),
            (
                0 <= self.drop <= most + 1e-9,
                f"drop must lie between 0 and {most:g}, the share of such tokens",
            ),
            (
                self.fractions == "same" or self.drop_what != "irrelevant" or not self.drop,
                "drawn fractions leave some samples too few irrelevant tokens to drop: "
                "use fractions 'same'",
            ),
            (
                self.heads >= 1 and (self.heads == 1 or not self.skip),
                "heads must be 1 with skip, and 1 at least",
            ),
            (
                min(self.neurons, self.batch, self.max_steps, self.test_size) >= 1,
                "sizes must be at least 1",
            ),
            (
                self.samples == 0 or self.samples >= self.batch,
                "samples must be 0 (one pass) or at least batch",
            ),
            (self.step > 0 and self.goal > 0, "step and goal must be positive"),
            (self.check_growth > 1, "check_growth must exceed 1"),
        )
        for holds, message in rules:
            if not holds:
                raise BadInput(message)

    @property
    def torch_dtype(self) -> torch.dtype:
        return getattr(torch, self.dtype)


def patterns(s: Settings) -> Tensor:
    """Vectors `(M, members, d)`: the first M unit vectors; with members, fans about them in
    orthogonal planes.

    A fan holds unit vectors cos(t) e_j + sin(t) e_(M+j), the outer two `spread` apart; vectors of
    two sets are sqrt(2) apart, so that G.2's condition 2 tau + Delta < kappa leaves room for the
    noise.
    """
    eye = torch.eye(s.dim, dtype=s.torch_dtype)
    if s.members == 1:
        return eye[: s.patterns, None]
    widest = math.asin(s.spread / 2)
    angle = torch.linspace(-widest, widest, s.members, dtype=eye.dtype)[:, None]
    return (
        angle.cos() * eye[: s.patterns, None] + angle.sin() * eye[s.patterns : 2 * s.patterns, None]
    )


def draw(
    s: Settings, g: torch.Generator, count: int, even: bool = False
) -> tuple[Tensor, Tensor, Tensor]:
    """Samples of one trial: tokens `(count, L, d)`, labels +-1 `(count, K)`, which tokens are
    relevant `(count, L)`.

    K is 1 for two classes, 2 for four. L is what dropping leaves.
    With `even` the classes take turns; else labels are drawn freely, so they balance to O(sqrt N).
    """
    k, size, free = s.classes, s.tokens, s.patterns - s.classes
    label = torch.arange(count) % k if even else torch.randint(k, (count,), generator=g)
    rival = (label + torch.randint(1, k, (count,), generator=g)) % k
    if s.fractions == "same":
        n, c = round(s.relevant * size), round(s.confusion * size)
        kind = torch.cat(
            [torch.zeros(n), torch.ones(c), 2 + torch.arange(size - n - c) % free]
        ).long()
        kind = kind.expand(count, size)
    else:
        shares = [s.relevant, s.confusion] + [(1 - s.relevant - s.confusion) / free] * free
        kind = torch.multinomial(
            torch.tensor(shares), count * size, replacement=True, generator=g
        ).view(count, size)
        # The vote decides: where the rival won, the two change names. A tie leaves the label as
        # drawn.
        lost = (kind == 1).sum(1) > (kind == 0).sum(1)
        label, rival = torch.where(lost, rival, label), torch.where(lost, label, rival)
        kind = torch.where(lost[:, None] & (kind < 2), 1 - kind, kind)
    if s.output == "own":  # else the model does not see the order of the tokens
        kind = kind.gather(1, torch.rand(count, size, generator=g).argsort(1))
    which = torch.where(
        kind == 0, label[:, None], torch.where(kind == 1, rival[:, None], kind - 2 + k)
    )
    x = torch.randn(count, size, s.dim, generator=g, dtype=s.torch_dtype)
    loud = torch.zeros(count, size, dtype=torch.bool)
    if s.noisy:
        loud = torch.rand(count, size, generator=g).argsort(1).argsort(1) < round(s.noisy * size)
    x *= torch.where(loud, s.loud, s.noise).to(x.dtype)[..., None]
    member = torch.randint(s.members, (count, size), generator=g) if s.members > 1 else 0
    x += patterns(s)[which, member]
    relevant = kind == 0
    if s.drop:
        may_go = {"irrelevant": ~relevant, "noisy": loud, "any": torch.ones_like(loud)}[s.drop_what]
        order = torch.rand(count, size, generator=g) - 2.0 * may_go
        stay = order.argsort(1)[:, round(s.drop * size) :].sort(1).values
        x, relevant = x.gather(1, stay[..., None].expand(-1, -1, s.dim)), relevant.gather(1, stay)
    return x, torch.tensor(LABELS[k], dtype=x.dtype)[label], relevant


def led_astray(basis: Tensor, direction: Tensor, size: float, patterns: int) -> Tensor:
    """Matrices `(H, d, d)` near an orthonormal basis, of norm at most 1 as Assumption 1 asks.

    Every unit vector is led astray in a direction of its own, singular values above 1 are cut to 1,
    and what is left of the error is drawn in until that of the worst pattern is `size`. The norm
    stays at most 1: the ball of norm 1 is convex.
    """
    u, singular, v = torch.linalg.svd(
        basis + FAR * size * direction / direction.norm(dim=1, keepdim=True)
    )
    error = u @ (singular.clamp(max=1)[..., None] * v) - basis
    worst = error[..., :patterns].norm(dim=1).amax(1)[:, None, None]
    return basis + error * (size / worst.clamp(min=size or 1))


def initial(s: Settings, g: torch.Generator) -> dict[str, Tensor]:
    """One trial's weights at the start, under `NAMES` and two that are never trained.

    query, key, value `(H, d, d)`; hidden `(m, H d)`; output `(1 or L, m, K)` with entries
    +-1/sqrt(m); features `(H, d, d)`, whose columns are p_1, p_2, ... (Assumption 1).
    """
    h, d = s.heads, s.dim

    def noise(*shape):
        return torch.randn(*shape, generator=g, dtype=s.torch_dtype)

    features, eye = (
        torch.linalg.qr(noise(h, d, d))[0],
        torch.eye(d, dtype=s.torch_dtype).expand(h, d, d),
    )
    astray = [noise(h, d, d) for _ in range(3)]  # drawn in every reading, so that the rest agrees
    if s.start == "assumption":
        bases, sizes = (eye, eye, features), (s.delta, s.delta, s.sigma)
        query, key, value = (led_astray(*each, s.patterns) for each in zip(bases, astray, sizes))
    else:
        power = 2 if s.start == "printed" else 1
        query = key = eye * (s.delta / s.noise) ** power
        value = features * (s.sigma / s.noise) ** power
    kept = round((1 - s.drop) * s.tokens) if s.output == "own" else 1
    sign = 2.0 * torch.randint(2, (kept, s.neurons, len(LABELS[s.classes][0])), generator=g) - 1
    return {
        "query": query.clone(),
        "key": key.clone(),
        "value": value,
        "hidden": s.xi * noise(s.neurons, h * d),
        "output": sign.to(s.torch_dtype) / math.sqrt(s.neurons),
        "features": features,
    }


def layouts(x: Tensor) -> tuple[Tensor, Tensor]:
    """Tokens `(T, B, L, d)` with features first: as one matrix `(T, 1, d, B L)`, and by sample
    `(T, 1, B, d, L)`.

    A product that is d = 10 columns wide runs at a fifth of the speed of one that is d rows high.
    """
    # no copy where memory has this order, as in training
    x = x.permute(0, 3, 1, 2).contiguous().unsqueeze(1)
    return x.flatten(3), x.transpose(2, 3).contiguous()


def attend(s: Settings, w: dict[str, Tensor], x: Tensor) -> Tensor | None:
    """Attention `(T, H, B, L, L)` of x `(T, B, L, d)`, or None where a token sees itself alone; a
    row sums to 1."""
    if s.attention == "none":
        return None
    flat, each = layouts(x)
    asked = (w["key"].mT @ w["query"]) @ flat  # W_K^T W_Q x_l
    return torch.softmax(asked.unflatten(3, x.shape[1:3]).transpose(2, 3).mT @ each, dim=-1)


def gradients(s: Settings, w: dict[str, Tensor], x: Tensor, y: Tensor, only_margin: bool = False):
    """Margins y^T F `(T, B)` and the mean hinge loss's gradient for each trial, by hand: faster
    than autograd.

    Args:
        w: weights of T trials, stacked; x: `(T, B, L, d)`; y: `(T, B, K)`.
        only_margin: leave the gradients out and return the attention in their place.
    Returns the margins and a dict of gradients, shaped like the weights that are trained.
    """
    t, b, size, d = x.shape
    flat, each = layouts(x)
    attention, mixed = attend(s, w, x), flat.expand(-1, s.heads, -1, -1)
    if attention is not None:
        mixed = (each @ attention.mT).transpose(2, 3).flatten(3)  # (T, H, d, B L)
    value = (w["value"] @ mixed).flatten(1, 2)  # (T, H d, B L)
    if s.skip:
        value = value + flat[:, 0]
    # (T, H d, m), and one a `(T, 1 or L, m)` an output
    lead, outputs = (w["hidden"].mT, w["output"].unbind(-1))
    hidden = (value.mT @ lead).view(t, b, size, -1)  # the largest thing here, (T, B, L, m)
    # Relu(h) = 1[h > 0] h, so read-out and gradients need a 1[h > 0] alone: Relu's gradient, in one
    # pass and in place.
    rooms = [hidden] if len(outputs) == 1 else [torch.empty_like(hidden) for _ in outputs]
    for a, room in zip(outputs, rooms):
        torch.ops.aten.threshold_backward.grad_input(a.unsqueeze(1), hidden, 0, grad_input=room)
    gates = [room.flatten(1, 2) for room in rooms]  # (T, B L, m)
    value = value.view(t, -1, b, size)
    pulls = [(lead @ gate.mT).view_as(value) for gate in gates]  # dF_k / d value
    labels = [label[:, None, :, None] for label in y.unbind(-1)]
    margin = (
        sum((value * pull).sum((1, 3)) * label[:, 0, :, 0] for pull, label in zip(pulls, labels))
        / size
    )
    if only_margin:
        return margin, attention
    # d mean loss / d a token's read-out
    slope = ((margin < 1).to(x.dtype) / -(b * size))[:, None, :, None]
    slopes = [slope * label for label in labels]
    out = {
        "hidden": reduce(
            add, [(value * part).flatten(2) @ gate for gate, part in zip(gates, slopes)]
        ).mT
    }
    to_value = reduce(add, [pull * part for pull, part in zip(pulls, slopes)]).view(
        t, s.heads, d, -1
    )
    out["value"] = to_value @ mixed.mT
    if s.attention == "trained":
        to_mixed = (w["value"].mT @ to_value).unflatten(3, (b, size)).transpose(2, 3)
        score = torch._softmax_backward_data(to_mixed.mT @ each, attention, -1, x.dtype)
        # Scores are x^T W_K^T W_Q x, so both gradients come from one matrix: sum_n X S X^T.
        pairs = (each @ score).transpose(2, 3).flatten(3) @ flat.mT  # (T, H, d, d)
        out["query"], out["key"] = w["key"] @ pairs.mT, w["query"] @ pairs
    return margin, out


def on_relevant(attention: Tensor | None, relevant: Tensor) -> Tensor:
    """Eq. 15's left side `(T,)`: attention summed over label-relevant tokens, averaged over l,
    samples, heads.

    attention: as `attend` gives it; relevant: `(T, B, L)`.
    """
    if attention is None:
        return relevant.double().mean((1, 2))
    return (attention.mean(3) * relevant.unsqueeze(1)).sum(-1).mean((1, 2))
