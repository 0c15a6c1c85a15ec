"""iVPT Eq. 7-13 and DA-VPT's Theorem 1 hold, and where they do not."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from visbook.theory.attention_shift import (
    attention_change,
    draw,
    exponent,
    reweighting,
    rises,
    rises_where_positive,
)

STEPS = torch.logspace(-5, -2, 7, dtype=torch.float64)


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10**6), prompts=st.integers(1, 50), aggregated=st.booleans())
def test_joined_prompts_reweight_attention(seed, prompts, aggregated):
    case = draw(seed, prompts, aggregated=aggregated)
    direct, scaled = reweighting(case)
    assert torch.allclose(direct, scaled, atol=1e-12)
    # Eq. 10 and 13 prompt by prompt, without the normalisation: ratios to the first prompt
    w, alpha = case.weights(case.own), case.factors().prod(1)
    assert torch.allclose(direct / direct[0], (w * alpha) / (w[0] * alpha[0]), rtol=1e-9)
    by_hand = [
        sum(
            case.gamma[i, j] * (case.query @ case.key @ case.before[j]) / 64**0.5
            for j in range(prompts)
        ).exp()
        for i in range(prompts)
    ]
    assert torch.allclose(alpha, torch.stack(by_hand), rtol=1e-9)


def test_the_identity_needs_the_layer_norm_left_out():
    gaps = [
        (a - b).abs().max() for a, b in (reweighting(draw(seed), norm=True) for seed in range(20))
    ]
    assert min(gaps) > 1e-3


@pytest.mark.parametrize("seed", range(5))
def test_theorem_1_is_first_order_when_one_score_moves(seed):
    errors = attention_change(STEPS, seed)
    assert exponent(STEPS, errors["one score moves"]) == pytest.approx(2, abs=0.02)
    assert exponent(STEPS, errors["all scores, whole derivative"]) == pytest.approx(2, abs=0.02)
    # moving p moves all scores, and the theorem's formula leaves out their share: an error of first
    # order
    assert exponent(STEPS, errors["the prompt moves"]) == pytest.approx(1, abs=0.02)


def test_the_derivative_is_autograds():
    generator = torch.Generator().manual_seed(3)
    prompt = torch.randn(8, generator=generator, dtype=torch.float64, requires_grad=True)
    values = torch.randn(5, 8, generator=generator, dtype=torch.float64)
    weights = (values @ prompt / 8**0.5).softmax(0)
    move = torch.randn(8, generator=generator, dtype=torch.float64)
    change = values @ move / 8**0.5
    for i in range(5):
        slope = torch.autograd.grad(weights[i], prompt, retain_graph=True)[0] @ move
        assert torch.allclose(slope, weights[i] * (change[i] - weights @ change))


def test_the_printed_condition_does_not_make_the_weight_rise():
    # straight towards the patch it rises; on the printed side of it, not always, and with a mean in
    # common less often
    assert rises(0, 1e-4) == 1
    around, common = (rises_where_positive(0, 1e-4, shared) for shared in (0, 1))
    assert common < around < 1
