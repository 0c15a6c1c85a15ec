"""The two-layer, single-head ViT on four patterns of AP's Section 5 and Appendix C.

Data (Appendix C.3): a sample has `P` tokens. One, at a uniform position, is v1 (label +1) or v2
(label -1); the other `P - 1` are all v3 or all v4. Patterns have unit norm and are orthogonal but
for v3.v4 = gamma < 0. Gaussian noise N(0, (c / P)^2) is added to every token.

Model (Eq. A13): attention with scores beta^2 <x_i, x_j>, four ReLU neurons v1..v4 (layer 1) and
e1..e4 (layer 2), read out with +1 for neurons 1 and 3 and -1 for 2 and 4, divided by 4 P. Three
readings are made:

- The paper has m = 4 k neurons, k equal copies of each pattern, weighted 1 / (m P). The copies sum
  to the one neuron per pattern with weight 1 / (4 P) used here; layer-1 features have unit norm, as
  its e_i do.
- W_K and W_V hold a permutation P_x. The proofs use it to move *tokens*, so it permutes keys and
  values together, and a softmax-weighted sum does not see that. Only the attention distance of
  Lemma 1 does.
- The loss is max(0, 1/P - y f), trained by one-pass SGD (a fresh batch a step), so samples = batch
  x steps.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from visprompt.errors import BadInput, choose

SIGNS = (1.0, -1.0, 1.0, -1.0)  # read-out of the neurons e1..e4, Appendix C.3
BLOCK = 32  # steps whose data are drawn together; part of what a seed means
GLANCE = 16  # held-out samples looked at before all of them are
MEMORY = 64 * 2**20  # bytes: a chunk's attention matrices then stay near the processor's caches
PAIRS = 4  # (v1, v3), (v1, v4), (v2, v3), (v2, v4)


@dataclass(frozen=True)
class Settings:
    """Everything that decides a trial besides its seed. Raises BadInput for what the model does not
    allow."""

    tokens: int = 16  # P, the quantity that every bound is stated in
    layer: int = 1  # h: 1 adds the prompt to the patterns x, 2 to the first layer's features z
    dim: int = 8  # d: the four patterns' span and as many directions that no neuron sees
    gamma: float = -0.5  # v3.v4, the middle of the allowed (-1, 0)
    # beta_1 = beta_2 = Theta(1); e < P - 1 keeps Lemma 1's lambda_1 < 1/2 from P = 4 on
    beta: float = 1.0
    # c in sigma = c / P, so P sigma: keeps the factors 1 - P sigma and 1 - sigma near 1
    noise: float = 0.1
    # eta, one for all P as in the bounds; a step moves a token by about 1/P (A38, A80)
    step: float = 4.0
    batch: int = 8  # B = Omega(1): two samples of each of the four pattern pairs
    # every batch holds the four pairs equally: A40 and A82 take e1 and e2 as level
    balanced: bool = True
    # one vector for all tokens, as A40 comes out; the paper's prompt has one per token
    shared: bool = False
    goal: str = "error"  # stop at no held-out y f <= 0; "margin": at all y f >= 1/P (A57, A92)
    # the goal must hold at every check from T to hold x T; 1: the first time counts
    hold: float = 1.0
    # the cap; a trial that reaches it is reported as censored, never dropped
    max_steps: int = 20_000
    test_size: int = 256  # held-out samples a trial: 64 of each pair
    # held-out checks at steps 1.03^k: a step count is known to 3 % at every P
    check_growth: float = 1.03
    trace_growth: float = 1.25  # spacing of the kept error/norm/direction trace
    dtype: str = "float32"  # margins are about 1/P, far above its rounding; tests use float64

    def __post_init__(self):
        if self.layer not in (1, 2):
            raise BadInput(
                f"layer must be 1 (prompt on the tokens) or 2 (on their features), not "
                f"{self.layer!r}"
            )
        choose("goal", self.goal, ("error", "margin"))
        choose("dtype", self.dtype, ("float32", "float64"))
        rules = (
            (
                self.tokens >= 3,
                "tokens must be at least 3: one discriminative and two background tokens",
            ),
            (self.dim >= 4, "dim must be at least 4, the span of the four patterns"),
            (-1 < self.gamma < 0, "gamma must lie strictly between -1 and 0, e.g. -0.5"),
            (self.beta > 0, "beta must be positive, e.g. 1.0"),
            (
                self.noise >= 0,
                "noise must be 0 or more; it is P sigma, which the bounds keep below 1",
            ),
            (self.step > 0, "step must be positive, e.g. 1.0"),
            (self.batch >= 1, "batch must be at least 1, e.g. 8"),
            (
                not self.balanced or self.batch % PAIRS == 0,
                "batch must be a multiple of 4, or balanced False",
            ),
            (self.max_steps >= 1, "max_steps must be at least 1"),
            (
                self.test_size >= PAIRS,
                "test_size must be at least 4, one sample of each pattern pair",
            ),
            (
                self.hold >= 1,
                "hold must be at least 1, e.g. 1.25: the goal must hold from T to 1.25 T",
            ),
            (
                self.check_growth > 1 and self.trace_growth > 1,
                "check_growth and trace_growth must exceed 1",
            ),
        )
        for holds, message in rules:
            if not holds:
                raise BadInput(message)

    @property
    def torch_dtype(self) -> torch.dtype:
        return getattr(torch, self.dtype)


def patterns(settings: Settings) -> Tensor:
    """v1..v4 as rows `(4, d)`: unit norm, orthogonal but for v3.v4 = gamma."""
    v = torch.zeros(4, settings.dim, dtype=settings.torch_dtype)
    v[0, 0] = v[1, 1] = v[2, 2] = 1.0
    v[3, 2], v[3, 3] = settings.gamma, math.sqrt(1 - settings.gamma**2)
    return v


def assemble(
    settings: Settings, pair: Tensor, place: Tensor, noise: Tensor
) -> tuple[Tensor, Tensor]:
    """Samples from their parts.

    Args:
        pair: `(...)` integers 0..3, the pattern pairs in the order of `PAIRS`.
        place: `(...)` position of the discriminative token, 0..P-1.
        noise: `(..., P, d)` standard normal. Returns tokens of that shape and labels `(...)` in
            {+1, -1}.
    """
    v = patterns(settings)
    x = noise * (settings.noise / settings.tokens)
    x += v[2 + pair % 2].unsqueeze(-2)
    here = torch.arange(settings.tokens) == place.unsqueeze(-1)
    x += here.unsqueeze(-1) * (v[pair // 2] - v[2 + pair % 2]).unsqueeze(-2)
    return x, 1.0 - 2.0 * (pair // 2).to(x.dtype)


def draw(settings: Settings, generators: list[torch.Generator], count: int, even: bool = False):
    """`count` samples for each generator: tokens `(trials, count, P, d)`, labels and places
    `(trials, count)`.

    A place is the discriminative token's position. With `even` the four pairs take turns instead of
    being drawn, as the held-out sample needs.
    """
    pair, place, noise = [], [], []
    for g in generators:
        code = torch.randint(PAIRS * settings.tokens, (count,), generator=g)
        pair.append(torch.arange(count) % PAIRS if even else code // settings.tokens)
        place.append(code % settings.tokens)
        size = (count, settings.tokens, settings.dim)
        noise.append(torch.randn(size, generator=g, dtype=settings.torch_dtype))
    place = torch.stack(place)
    return *assemble(settings, torch.stack(pair), place, torch.stack(noise)), place


def _attend(u: Tensor, values: Tensor, beta: float) -> tuple[Tensor, Tensor]:
    """Rows of attention `(n, P, P)` of u `(n, P, k)` with itself, and the attended values
    `(n, P, 4)`."""
    attention = torch.softmax((beta**2 * u) @ u.mT, dim=-1)
    return attention, attention @ values


def _attend_back(
    u: Tensor, attention: Tensor, out: Tensor, values: Tensor, grad: Tensor, beta: float
):
    """Gradients of `_attend`'s output with respect to u through the scores, and to the values."""
    to_values = attention.mT @ grad
    inner = grad @ values.mT
    inner -= (grad * out).sum(-1, keepdim=True)
    inner *= attention  # gradient of the scores: the softmax's Jacobian in closed form
    return beta**2 * (inner @ u + inner.mT @ u), to_values


def _layers(settings: Settings, x: Tensor, prompt: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Rows of attention `(..., P, P)` of both layers, and the second one's neurons
    `(..., P, 4)`."""
    u = x + prompt if settings.layer == 1 else x
    first, z = _attend(u, u @ patterns(settings).T, settings.beta)
    u = torch.relu(z) + prompt if settings.layer == 2 else torch.relu(z)
    second, out = _attend(u, u, settings.beta)
    return first, second, torch.relu(out)


def forward(settings: Settings, x: Tensor, prompt: Tensor) -> Tensor:
    """f(x, delta) of Eq. A13 for x `(..., P, d)`: outputs `(...)`.

    prompt: broadcastable to `(..., P, d)` for layer 1, `(..., P, 4)` for layer 2. Differentiable.
    """
    out = _layers(settings, x, prompt)[2]
    return (out @ out.new_tensor(SIGNS)).sum(-1) / (4 * settings.tokens)


def attention(settings: Settings, x: Tensor, place: Tensor, prompt: Tensor) -> Tensor:
    """P times the weight on the discriminative token, mean over samples and queries: `(trials, 2)`,
    layers 1 and 2.

    1 is what attention without preference gives; the proofs' end (A59, "all tokens attend") is of
    order P.
    """
    weights = [w.mean(-2) for w in _layers(settings, x, prompt.unsqueeze(1))[:2]]
    return settings.tokens * torch.stack(
        [w.gather(-1, place.unsqueeze(-1)).mean((1, 2)) for w in weights], dim=1
    )


def gradient(settings: Settings, x: Tensor, y: Tensor, prompt: Tensor) -> Tensor:
    """Gradient of the batch's mean hinge loss with respect to the prompt, by hand: faster than
    autograd.

    Args:
        x: `(trials, B, P, d)`; y: `(trials, B)`.
        prompt: `(trials, P, d)` for layer 1, `(trials, P, 4)` for layer 2; so is what returns.
    """
    trials, batch, p, d = x.shape
    v, beta = patterns(settings), settings.beta
    u1 = (x + prompt.unsqueeze(1) if settings.layer == 1 else x).reshape(trials * batch, p, d)
    values = u1 @ v.T
    a1, o1 = _attend(u1, values, beta)
    u2 = torch.relu(o1)
    if settings.layer == 2:
        u2 = (u2.view(trials, batch, p, 4) + prompt.unsqueeze(1)).view(-1, p, 4)
    a2, o2 = _attend(u2, u2, beta)
    read = o2.new_tensor(SIGNS) / (4 * p)
    margin = y.reshape(-1) * (torch.relu(o2) @ read).sum(-1)
    active = (margin < 1 / p).to(x.dtype) * -y.reshape(-1) / batch
    grad = (o2 > 0) * read * active.view(-1, 1, 1)
    through_scores, through_values = _attend_back(u2, a2, o2, u2, grad, beta)
    grad = through_scores + through_values
    if settings.layer == 1:
        grad = grad * (o1 > 0)
        through_scores, through_values = _attend_back(u1, a1, o1, values, grad, beta)
        grad = through_scores + through_values @ v
    return grad.view(trials, batch, p, -1).sum(1)


def directions(settings: Settings, prompt: Tensor) -> Tensor:
    """Coefficients `(trials, 4)` of the token-averaged prompt along v1..v4 (layer 1) or e1..e4
    (layer 2)."""
    mean = prompt.mean(1)
    if settings.layer == 2:
        return mean
    return mean @ torch.linalg.pinv(patterns(settings))


def own_share(prompt: Tensor) -> Tensor:
    """Share `(trials,)` of the prompt's squared norm that its tokens do not have in common; 0 for a
    shared prompt."""
    return (prompt - prompt.mean(1, keepdim=True)).square().sum((1, 2)) / prompt.square().sum(
        (1, 2)
    ).clamp_min(1e-30)


def held_out(
    settings: Settings, x: Tensor, y: Tensor, prompt: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Shares `(trials,)` of held-out samples with y f <= 0 and y f < 1/P, and which trials meet the
    goal."""
    margin = y * forward(settings, x, prompt.unsqueeze(1))
    error, loss_share = (
        (margin <= 0).double().mean(1),
        (margin < 1 / settings.tokens).double().mean(1),
    )
    return error, loss_share, (error if settings.goal == "error" else loss_share) == 0


def run_trials(
    settings: Settings, seeds: list[int], memory: int = MEMORY, gradient=gradient
) -> list[dict]:
    """Train one prompt per seed, all together, until each reaches the goal or the cap.

    A trial has its own generator and leaves the batch when done: its company changes its result by
    rounding only.

    Args:
        memory: bytes that the attention matrices of one chunk of trials may take.
        gradient: how to differentiate; `autograd_gradient` is the definition that the default must
            equal.

    Returns:
        one dict a seed: "seed", "steps" (T; None when censored at the cap), "samples", "error" and
        "loss_share" at the end, "token_norm" (mean over tokens), "frobenius", "norm_sum" (over
        tokens), "direction" (four coefficients), "own" (`own_share`), "attention" (two numbers),
        "trace" with rows [step, error, token norm, four coefficients, own share, attention in
        layers 1 and 2].

    Raises:
        BadInput: no seeds, or a seed twice.
    """
    if not seeds or len(set(seeds)) < len(seeds):
        raise BadInput("seeds must be a list of different integers, e.g. [0, 1, 2, 3]")
    # Four copies of (B, P, P) numbers: two attentions and their gradients.
    one = (
        4
        * max(settings.batch, settings.test_size)
        * settings.tokens**2
        * settings.torch_dtype.itemsize
    )
    chunk = max(1, memory // one)
    results = []
    for start in range(0, len(seeds), chunk):
        results += _run_chunk(settings, seeds[start : start + chunk], gradient)
    return results


def run_curve(
    cells: list[Settings], seeds: list[int], keep: list[str], trace: bool = False
) -> list[dict]:
    """Trials of several settings in the form that records keep: per cell
    `{name of keep: one value a trial}`.

    With `trace` a cell also has the "trace" of its median trial. Numbers have five digits.
    """
    found = []
    for settings in cells:
        trials = run_trials(settings, seeds)
        found.append({name: [_rounded(trial[name]) for trial in trials] for name in keep})
        if trace:
            order = sorted(trials, key=lambda trial: trial["steps"] or math.inf)
            found[-1]["trace"] = order[len(order) // 2]["trace"]
    return found


def _rounded(value):
    if isinstance(value, list):
        return [_rounded(part) for part in value]
    return float(f"{value:.5g}") if isinstance(value, float) else value


def _run_chunk(settings: Settings, seeds: list[int], gradient) -> list[dict]:
    generators = [torch.Generator().manual_seed(seed) for seed in seeds]
    test_x, test_y, place = draw(settings, generators, settings.test_size, even=True)
    width = settings.dim if settings.layer == 1 else 4
    prompt = torch.zeros(len(seeds), settings.tokens, width, dtype=settings.torch_dtype)
    running = list(range(len(seeds)))
    results: list[dict] = [{"seed": seed, "trace": []} for seed in seeds]
    # the step from which the goal has held without a break
    since: list[int | None] = [None] * len(seeds)
    next_check = next_trace = 1
    for step in range(1, settings.max_steps + 1):
        at = (step - 1) % BLOCK
        # many steps' data in one call: drawing is otherwise the slowest part of a small step
        if at == 0:
            own = [generators[i] for i in running]
            x, y, _ = draw(settings, own, BLOCK * settings.batch, even=settings.balanced)
            x = x.unflatten(1, (BLOCK, settings.batch))
            y = y.unflatten(1, (BLOCK, settings.batch))
        move = gradient(settings, x[:, at], y[:, at], prompt)
        if settings.shared:
            move = move.mean(1, keepdim=True)  # every token's share of the common vector's gradient
        prompt = prompt - settings.step * move
        last = step == settings.max_steps
        if step < next_check and not last:
            continue
        next_check = math.ceil(max(step + 1, step * settings.check_growth))
        trace = step >= next_trace or last
        # Most checks fail on a few samples already; only a trace needs the share over all of them.
        if (
            not trace
            and not held_out(settings, test_x[:, :GLANCE], test_y[:, :GLANCE], prompt)[2].any()
        ):
            for i in running:
                since[i] = None
            continue
        error, loss_share, reached = held_out(settings, test_x, test_y, prompt)
        for row, i in enumerate(running):
            since[i] = (since[i] or step) if reached[row] else None
        done = [since[i] is not None and step >= settings.hold * since[i] for i in running]
        ended = {
            row: since[i] if done[row] else None
            for row, i in enumerate(running)
            if done[row] or last
        }
        if trace or ended:
            told = {
                "error": error,
                "loss_share": loss_share,
                **_describe(settings, test_x, place, prompt),
            }
            _note(settings, [results[i] for i in running], told, step, ended, trace)
        if trace:
            next_trace = math.ceil(max(step + 1, step * settings.trace_growth))
        if ended:
            keep = [row for row in range(len(running)) if row not in ended]
            running = [running[row] for row in keep]
            prompt, x, y = prompt[keep], x[keep], y[keep]
            test_x, test_y, place = test_x[keep], test_y[keep], place[keep]
        if not running:
            break
    return results


def _describe(settings: Settings, x: Tensor, place: Tensor, prompt: Tensor) -> dict[str, Tensor]:
    """What is told of every trial's prompt, on its held-out samples."""
    norms = prompt.norm(dim=2)
    return {
        "token_norm": norms.mean(1),
        "frobenius": norms.norm(dim=1),
        "norm_sum": norms.sum(1),
        "direction": directions(settings, prompt),
        "own": own_share(prompt),
        "attention": attention(settings, x, place, prompt),
    }


def _note(
    settings: Settings,
    results: list[dict],
    told: dict[str, Tensor],
    step: int,
    ended: dict,
    trace: bool,
):
    """Write into the running trials' results: a row of the trace, and the end of those in `ended`,
    {row: T}."""
    for row, result in enumerate(results):
        now = {name: value[row].tolist() for name, value in told.items()}
        if trace or row in ended:
            numbers = [
                now["error"],
                now["token_norm"],
                *now["direction"],
                now["own"],
                *now["attention"],
            ]
            result["trace"].append([step, *_rounded(numbers)])
        if row in ended:
            steps = ended[row]
            result |= {"steps": steps, "samples": steps and steps * settings.batch, **now}


def autograd_gradient(settings: Settings, x: Tensor, y: Tensor, prompt: Tensor) -> Tensor:
    """The definition of `gradient`: autograd through `forward` and the mean hinge loss of each
    trial."""
    prompt = prompt.detach().requires_grad_()
    margin = y * forward(settings, x, prompt.unsqueeze(1))
    # a trial's loss sees only its own prompt
    loss = torch.relu(1 / settings.tokens - margin).mean(1).sum()
    return torch.autograd.grad(loss, prompt)[0]
