"""How a change of prompts changes attention: iVPT's re-weighting (Eq. 7-13) and DA-VPT's Theorem 1,
in numbers.

Everything is float64, one query and one head, with random vectors of the sizes of ViT-B (d = 64 a
head, D = 768).
"""

from dataclasses import dataclass

import torch


@dataclass(frozen=True)
class Draw:
    """One random case: a query, a key projection and the prompts of two neighbouring blocks."""

    query: torch.Tensor  # (d,)
    key: torch.Tensor  # W_K^l (d, D)
    bias: torch.Tensor  # of the key projection (d,); it is in no equation and changes nothing
    own: torch.Tensor  # P^l (N, D)
    before: torch.Tensor  # P^{l-1} (N, D)
    gamma: torch.Tensor  # DA's weights (N, N)

    def weights(self, prompts: torch.Tensor, norm: bool = False) -> torch.Tensor:
        """Attention of the query over prompts (N, D), normalised over them (Eq. 7)."""
        if norm:
            prompts = torch.nn.functional.layer_norm(prompts, prompts.shape[-1:])
        keys = prompts @ self.key.T + self.bias
        return (keys @ self.query / len(self.query) ** 0.5).softmax(0)

    def factors(self) -> torch.Tensor:
        """alpha_{i,j} of Eq. 10 and 12: how the j-th earlier prompt, weighted by gamma_{i,j},
        scales weight i."""
        scores = self.before @ self.key.T @ self.query / len(self.query) ** 0.5
        return (self.gamma * scores).exp()


def draw(
    seed: int, prompts: int = 10, width: int = 768, head: int = 64, aggregated: bool = True
) -> Draw:
    """A random case; without `aggregated` gamma is the identity, which is CDC alone (Eq. 8-10)."""
    generator = torch.Generator().manual_seed(seed)

    def normal(*shape):
        return torch.randn(shape, generator=generator, dtype=torch.float64)

    gamma = (
        normal(prompts, prompts) / prompts**0.5
        if aggregated
        else torch.eye(prompts, dtype=torch.float64)
    )
    return Draw(
        normal(head),
        normal(head, width) / width**0.5,
        normal(head),
        normal(prompts, width),
        normal(prompts, width),
        gamma,
    )


def reweighting(case: Draw, norm: bool = False) -> tuple[torch.Tensor, torch.Tensor]:
    """Attention over joined prompts (Eq. 8, 11), and VPT's attention times the factors, normalised
    (Eq. 10, 13).

    With `norm` the prompts pass the block's LayerNorm first, which Sec. 3.4 disregards. Both are
    (N,).
    """
    direct = case.weights(case.own + case.gamma @ case.before, norm)
    # a factor of one stands where gamma is zero, so the product over j is Eq. 13 for DA and Eq. 10
    # for CDC
    scaled = case.weights(case.own, norm) * case.factors().prod(1)
    return direct, scaled / scaled.sum()


def attention_change(
    steps: torch.Tensor, seed: int, tokens: int = 196, head: int = 64
) -> dict[str, torch.Tensor]:
    """Errors of Theorem 1's a_i (1 - a_i) ds_i when p takes a step of a given length along v_i.

    Returns:
        Mean over tokens i of |error|, a value a step, for three readings: "one score moves", s_i
        alone, as the proof has it; "the prompt moves", all scores follow p, as the theorem says;
        "all scores, whole derivative", the same with a_i (ds_i - sum_j a_j ds_j) in place of the
        theorem's formula.
    """
    generator = torch.Generator().manual_seed(seed)
    prompt = torch.randn(head, generator=generator, dtype=torch.float64)
    values = torch.randn(tokens, head, generator=generator, dtype=torch.float64)
    scores = values @ prompt / head**0.5
    weights = scores.softmax(0)
    # row i moves p towards v_i: the change of every score j
    moved = torch.nn.functional.normalize(values, dim=1) @ values.T / head**0.5
    errors = {
        name: [] for name in ("one score moves", "the prompt moves", "all scores, whole derivative")
    }
    for step in steps.tolist():
        own = step * moved.diagonal()
        theorem = weights * (1 - weights) * own
        alone = ((scores + torch.diag(own)).softmax(1) - weights).diagonal()
        together = ((scores + step * moved).softmax(1) - weights).diagonal()
        whole = weights * (own - step * moved @ weights)
        for name, error in zip(
            errors, (alone - theorem, together - theorem, together - whole), strict=True
        ):
            errors[name].append(error.abs().mean())
    return {name: torch.stack(values) for name, values in errors.items()}


def rises(seed: int, step: float, tokens: int = 196, head: int = 64) -> float:
    """Share of tokens whose weight rises when p takes a step of that length straight towards
    v_i."""
    generator = torch.Generator().manual_seed(seed)
    prompt = torch.randn(head, generator=generator, dtype=torch.float64)
    values = torch.randn(tokens, head, generator=generator, dtype=torch.float64)
    scores = values @ prompt / head**0.5
    moved = torch.nn.functional.normalize(values - prompt, dim=1) @ values.T / head**0.5
    after = (scores + step * moved).softmax(1).diagonal()
    return (after > scores.softmax(0)).double().mean().item()


def rises_where_positive(
    seed: int, step: float, shared: float = 0.0, tokens: int = 196, head: int = 64
) -> float:
    """Share of tokens i whose weight rises when p takes a random step dp with dp v_i > 0, which is
    the condition that DA-VPT prints.

    Args:
        shared: length of the mean that all tokens have in common, over that of their own part.
    """
    generator = torch.Generator().manual_seed(seed)

    def normal(*shape):
        return torch.randn(shape, generator=generator, dtype=torch.float64)

    prompt, mean, ways = normal(head), normal(head), normal(tokens, head)
    values = normal(tokens, head) + shared * mean
    steps = step * torch.nn.functional.normalize(ways, dim=1)
    steps = steps * (steps * values).sum(1, keepdim=True).sign()  # to the side of v_i
    scores = values @ prompt / head**0.5
    after = (scores + steps @ values.T / head**0.5).softmax(1).diagonal()
    return (after > scores.softmax(0)).double().mean().item()


def exponent(steps: torch.Tensor, errors: torch.Tensor) -> float:
    """Slope of log error against log step: the power with which the error shrinks."""
    x, y = steps.log(), errors.log()
    x = x - x.mean()
    return float((x * y).sum() / x.square().sum())
