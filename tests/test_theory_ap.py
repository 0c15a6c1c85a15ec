"""AP's toy model and Proposition 1, each against a definition written out here."""

import math

import pytest
import torch
from hypothesis import given, settings, strategies

from visbook.theory import ap_end_point, ap_limits, ap_toy, normalisation
from visbook.theory.ap_toy import Settings
from visprompt.errors import BadInput

EXACT = dict(dtype="float64", check_growth=1.2, test_size=16)


def generators(*seeds):
    return [torch.Generator().manual_seed(seed) for seed in seeds]


def some_prompt(s, trials, scale=0.3, seed=9):
    width = s.dim if s.layer == 1 else 4
    return scale * torch.randn(
        trials, s.tokens, width, generator=generators(seed)[0], dtype=torch.float64
    )


def loop_forward(s, x, prompt):
    """Eq. A13 for one sample, token by token."""
    v, p = ap_toy.patterns(s), s.tokens

    def layer(inputs, neurons):
        outputs = []
        for k in range(p):
            scores = torch.stack([s.beta**2 * (inputs[j] @ inputs[k]) for j in range(p)])
            weights = scores.exp() / scores.exp().sum()
            attended = sum(weights[j] * inputs[j] for j in range(p))
            outputs.append(torch.stack([(row @ attended).clamp(min=0) for row in neurons]))
        return outputs

    tokens = [x[j] + prompt[j] if s.layer == 1 else x[j] for j in range(p)]
    z = layer(tokens, v)
    z = [z[j] + prompt[j] if s.layer == 2 else z[j] for j in range(p)]
    out = layer(z, torch.eye(4, dtype=x.dtype))
    return sum(o[0] - o[1] + o[2] - o[3] for o in out) / (4 * p)


@pytest.mark.parametrize("gamma", [-0.9, -0.5, -0.1])
def test_patterns_have_the_stated_inner_products(gamma):
    v = ap_toy.patterns(Settings(gamma=gamma, dtype="float64"))
    wanted = torch.eye(4, dtype=torch.float64)
    wanted[2, 3] = wanted[3, 2] = gamma
    torch.testing.assert_close(v @ v.T, wanted, atol=1e-15, rtol=0)


@settings(max_examples=20, deadline=None)
@given(
    tokens=strategies.integers(3, 12),
    gamma=strategies.floats(-0.95, -0.05),
    seed=strategies.integers(0, 99),
)
def test_a_sample_has_one_discriminative_token_and_one_background(tokens, gamma, seed):
    s = Settings(tokens=tokens, gamma=gamma, noise=0.0, dtype="float64")
    x, y, place = ap_toy.draw(s, generators(seed), 12)
    v = ap_toy.patterns(s)
    kind = (x[0] @ v.T).argmax(-1)  # without noise a token is most like its own pattern
    torch.testing.assert_close(x[0], v[kind])
    for sample, label, here in zip(kind, y[0], place[0]):
        first = sample[sample < 2]
        assert len(first) == 1 and label == (1 if first == 0 else -1) and sample[here] == first
        assert len(set(sample[sample >= 2].tolist())) == 1


def test_noise_pairs_and_places_have_the_stated_distribution():
    s = Settings(tokens=8, noise=0.8, dtype="float64")
    x, y, place = ap_toy.draw(s, generators(0), 4000)
    clean, _ = ap_toy.assemble(
        s, pair_of(s, x[0], y[0], place[0]), place[0], torch.zeros_like(x[0])
    )
    noise = x[0] - clean
    assert (
        noise.std().item() == pytest.approx(0.8 / 8, rel=0.01) and abs(noise.mean().item()) < 1e-3
    )
    # three tokens: all entries and tokens are independent
    flat = noise.reshape(4000, -1)[:, :24] * 8 / 0.8
    torch.testing.assert_close(
        flat.T @ flat / 4000, torch.eye(24, dtype=torch.float64), atol=0.1, rtol=0
    )
    counts = torch.bincount(place[0], minlength=8)
    assert counts.min() > 400 and counts.max() < 600
    pairs = torch.bincount(pair_of(s, x[0], y[0], place[0]), minlength=4)
    assert pairs.min() > 900 and pairs.max() < 1100
    _, even, _ = ap_toy.draw(s, generators(0), 8, even=True)
    assert even[0].tolist() == [1, 1, -1, -1] * 2


def pair_of(s, x, y, place):
    """Which of the four pattern pairs a sample holds, read off its label and its mean
    background."""
    v = ap_toy.patterns(s)
    others = torch.arange(s.tokens) != place.unsqueeze(-1)
    mean = (x * others.unsqueeze(-1)).sum(1) / (s.tokens - 1)
    return (y < 0).long() * 2 + (mean @ v[2:].T).argmax(-1)


def test_generators_of_different_trials_differ_and_repeat():
    s = Settings(tokens=6, dtype="float64")
    x, _, _ = ap_toy.draw(s, generators(1, 2, 1), 4)
    assert torch.equal(x[0], x[2]) and not torch.equal(x[0], x[1])


@settings(max_examples=12, deadline=None)
@given(
    tokens=strategies.integers(3, 6),
    layer=strategies.sampled_from([1, 2]),
    beta=strategies.floats(0.3, 2.0),
    scale=strategies.floats(0.0, 1.5),
)
def test_forward_equals_the_definition_token_by_token(tokens, layer, beta, scale):
    s = Settings(tokens=tokens, layer=layer, beta=beta, noise=0.5, dtype="float64")
    x, _, _ = ap_toy.draw(s, generators(1), 4)
    prompt = some_prompt(s, 1, scale)[0]
    wanted = torch.stack([loop_forward(s, sample, prompt) for sample in x[0]])
    torch.testing.assert_close(ap_toy.forward(s, x[0], prompt), wanted, atol=1e-13, rtol=0)


def test_copies_of_the_neurons_only_rescale():
    """m = 4k neurons with weights 1/(mP), as the paper has, equal one neuron a pattern with
    1/(4P)."""
    s = Settings(tokens=5, layer=2, dtype="float64")
    x, _, _ = ap_toy.draw(s, generators(2), 4)
    f = ap_toy.forward(s, x[0], some_prompt(s, 1)[0])
    k = 3
    signs = torch.tensor(ap_toy.SIGNS, dtype=torch.float64).repeat_interleave(k) / (
        4 * k * s.tokens
    )
    v = ap_toy.patterns(s)
    z = torch.relu(torch.softmax(x[0] @ x[0].mT, -1) @ x[0] @ v.T) + some_prompt(s, 1)[0]
    neurons = torch.eye(4, dtype=torch.float64).repeat_interleave(k, 0)
    out = torch.relu(torch.softmax(z @ z.mT, -1) @ z @ neurons.T)
    torch.testing.assert_close(f, (out @ signs).sum(-1))


@settings(max_examples=12, deadline=None)
@given(
    tokens=strategies.integers(3, 7),
    layer=strategies.sampled_from([1, 2]),
    scale=strategies.floats(0.0, 1.5),
    seed=strategies.integers(0, 50),
)
def test_gradient_by_hand_equals_autograd(tokens, layer, scale, seed):
    s = Settings(tokens=tokens, layer=layer, noise=0.5, dtype="float64")
    x, y, _ = ap_toy.draw(s, generators(seed, seed + 1), 8)
    prompt = some_prompt(s, 2, scale, seed)
    wanted = ap_toy.autograd_gradient(s, x, y, prompt)
    torch.testing.assert_close(ap_toy.gradient(s, x, y, prompt), wanted, atol=1e-14, rtol=1e-9)


@pytest.mark.parametrize("layer", [1, 2])
def test_first_gradient_points_where_the_proofs_say(layer):
    """A38/A39 and A80/A81: the first step raises patterns 1 and 2, lowers 3 and 4, by about 1/(4P)
    a wrong sample."""
    s = Settings(tokens=64, layer=layer, noise=0.0, dim=4, dtype="float64")
    x, y, _ = ap_toy.draw(s, generators(0), 400, even=True)
    step = -ap_toy.gradient(s, x, y, torch.zeros(1, 64, 4, dtype=torch.float64))
    along = ap_toy.directions(s, step)[0]
    assert along[0] > 0 and along[1] > 0 and along[2] < 0 and along[3] < 0
    # (v1, v4) and (v2, v3) are wrong at first: a quarter of all samples each.
    assert along[2:].tolist() == pytest.approx([-1 / (4 * 4 * 64)] * 2, rel=0.1)


@settings(max_examples=12, deadline=None)
@given(
    layer=strategies.sampled_from([1, 2]),
    gamma=strategies.floats(-0.9, -0.1),
    beta=strategies.floats(0.4, 1.3),
)
def test_gradient_tends_to_the_closed_forms(layer, gamma, beta):
    """A38, A39 (layer 2) and A80, A81 (layer 1) without noise: 4 P df/d delta for large P, from
    sample (v1, v4)."""
    limit = torch.tensor([[1.0, 0, 0, -1.0], [1.0, 0, 0, -1.0]])
    # both factors of A80 come from the attention that others pay to the discriminative token
    if layer == 1:
        limit[0] = math.exp(-(beta**2)) * torch.tensor([1.0, 0, 0, 2 * beta**2 - 1])
    few, many = (
        abs(ap_limits.first_gradient(layer, tokens, gamma, beta) - limit.numpy()).max()
        for tokens in (128, 512)
    )
    assert many < 0.1 and many < 0.3 * few  # what is left is of order 1/P


@pytest.mark.parametrize("layer", [1, 2])
def test_noise_wakes_the_other_label_s_neuron_half_of_the_time(layer):
    """The terms of A38 to A81 beyond the first: Theta(1/P) of -e2; e3 stays asleep because gamma <
    0."""
    others = ap_limits.first_gradient(layer, 64, noise=0.1, draws=400)[1]
    assert others[1] == pytest.approx(-0.5, abs=0.08) and abs(others[2]) < 1e-3


@pytest.mark.parametrize("layer", [1, 2])
def test_gradient_vanishes_where_the_hinge_does(layer):
    """A right sample with y f >= 1/P adds nothing, so (v1, v3) alone moves no prompt at the
    start."""
    s = Settings(tokens=6, layer=layer, noise=0.0, dtype="float64")
    x, y = ap_toy.assemble(
        s, torch.tensor([0]), torch.tensor([2]), torch.zeros(1, 6, 8, dtype=torch.float64)
    )
    prompt = torch.zeros(1, 6, 8 if layer == 1 else 4, dtype=torch.float64)
    assert (y * ap_toy.forward(s, x, prompt)).item() > 1 / 6
    for way in (ap_toy.gradient, ap_toy.autograd_gradient):
        assert not way(s, x[None], y[None], prompt).any()


@pytest.mark.parametrize("layer", [1, 2])
@pytest.mark.parametrize("balanced", [True, False])
def test_batched_trials_equal_a_plain_loop(layer, balanced):
    s = Settings(tokens=6, layer=layer, noise=0.2, max_steps=50, balanced=balanced, **EXACT)
    results = ap_toy.run_trials(s, [3, 1, 2])
    for result in results:
        g = generators(result["seed"])
        ap_toy.draw(s, g, s.test_size, even=True)
        prompt = torch.zeros(1, 6, s.dim if layer == 1 else 4, dtype=torch.float64)
        taken = result["trace"][-1][0]
        for step in range(taken):
            if step % ap_toy.BLOCK == 0:
                x, y, _ = ap_toy.draw(s, g, ap_toy.BLOCK * s.batch, even=balanced)
            part = slice(step % ap_toy.BLOCK * s.batch, (step % ap_toy.BLOCK + 1) * s.batch)
            prompt = prompt - s.step * ap_toy.autograd_gradient(s, x[:, part], y[:, part], prompt)
        assert result["norm_sum"] == pytest.approx(prompt.norm(dim=2).sum().item(), abs=1e-9)
        assert result["direction"] == pytest.approx(
            ap_toy.directions(s, prompt)[0].tolist(), abs=1e-9
        )


def test_a_trial_does_not_depend_on_its_company():
    """Trials end at different steps here, so the batch shrinks while others go on."""
    s = Settings(tokens=8, layer=1, max_steps=300, **EXACT)
    together = ap_toy.run_trials(s, list(range(6)))
    assert len({r["steps"] for r in together}) > 1
    chunked = ap_toy.run_trials(s, list(range(6)), memory=1)
    for seed in (0, 5):
        alone = ap_toy.run_trials(s, [seed])[0]
        for other in (together[seed], chunked[seed]):
            assert alone["steps"] == other["steps"]
            assert alone["norm_sum"] == pytest.approx(other["norm_sum"], abs=1e-9)


def test_a_curve_holds_the_trials_of_its_cells():
    cells = [Settings(tokens=n, layer=1, max_steps=200, **EXACT) for n in (6, 8)]
    curve = ap_toy.run_curve(cells, [4, 5, 6], ["steps", "direction"], trace=True)
    for s, cell in zip(cells, curve):
        trials = ap_toy.run_trials(s, [4, 5, 6])
        assert cell["steps"] == [t["steps"] for t in trials]
        assert cell["direction"][1] == pytest.approx(trials[1]["direction"], rel=1e-4)
        assert cell["trace"] == sorted(trials, key=lambda t: t["steps"] or math.inf)[1]["trace"]


def test_attention_and_own_share_equal_the_definition():
    s = Settings(tokens=5, layer=1, noise=0.3, dtype="float64")
    x, _, place = ap_toy.draw(s, generators(3), 6)
    prompt = some_prompt(s, 1)
    got, wanted = ap_toy.attention(s, x, place, prompt)[0], []
    for sample, here in zip(x[0], place[0]):
        u = sample + prompt[0]
        first = torch.softmax(u @ u.T, -1)
        z = torch.relu(first @ u @ ap_toy.patterns(s).T)
        wanted.append([5 * a[:, here].mean().item() for a in (first, torch.softmax(z @ z.T, -1))])
    torch.testing.assert_close(got, torch.tensor(wanted, dtype=torch.float64).mean(0))
    mean = prompt[0].mean(0)
    own = sum((row - mean).square().sum() for row in prompt[0]) / prompt.square().sum()
    assert ap_toy.own_share(prompt).item() == pytest.approx(own.item())
    assert ap_toy.own_share(mean.expand(1, 5, -1)).item() < 1e-30


def test_a_finished_trial_classifies_fresh_samples():
    s = Settings(
        tokens=12, layer=1, max_steps=1000, goal="margin", hold=1.0, noise=0.0, shared=True, **EXACT
    )
    result = ap_toy.run_trials(s, [0])[0]
    assert result["steps"] and result["error"] == 0 and result["loss_share"] == 0
    assert result["samples"] == result["steps"] * s.batch


def test_the_cap_is_reported_as_censored():
    s = Settings(tokens=8, layer=2, max_steps=5, **EXACT)
    result = ap_toy.run_trials(s, [0])[0]
    assert result["steps"] is None and result["samples"] is None and result["error"] == 0.5


def test_hold_asks_for_an_error_that_stays_zero():
    s = Settings(tokens=12, layer=1, max_steps=400, noise=0.0, shared=True, **EXACT)
    first = ap_toy.run_trials(s, [0])[0]
    lasting = ap_toy.run_trials(Settings(**{**s.__dict__, "hold": 1.5}), [0])[0]
    assert lasting["steps"] == first["steps"]
    assert lasting["trace"][-1][0] >= 1.5 * first["steps"] > first["trace"][-1][0]


@pytest.mark.refused
@pytest.mark.parametrize(
    "wrong",
    [
        {"tokens": 2},
        {"dim": 3},
        {"gamma": 0.0},
        {"gamma": -1.0},
        {"gamma": 0.2},
        {"beta": 0.0},
        {"noise": -0.1},
        {"step": 0.0},
        {"batch": 0},
        {"batch": 6},
        {"max_steps": 0},
        {"test_size": 3},
        {"layer": 3},
        {"goal": "loss"},
        {"check_growth": 1.0},
        {"hold": 0.5},
        {"dtype": "float16"},
    ],
)
def test_impossible_settings_are_refused(wrong):
    with pytest.raises(BadInput):
        Settings(**wrong)


@pytest.mark.parametrize("seeds", [[], [1, 1]])
def test_seeds_must_differ(seeds):
    with pytest.raises(BadInput):
        ap_toy.run_trials(Settings(), seeds)


# Lemma 1


@settings(max_examples=30, deadline=None)
@given(
    tokens=strategies.integers(2, 9),
    seed=strategies.integers(0, 99),
    ties=strategies.sampled_from(["nearest", "first"]),
)
def test_attention_distance_equals_brute_force(tokens, seed, ties):
    g = generators(seed)[0]
    # small integers: many ties
    q, k = (torch.randint(-1, 2, (tokens, 2), generator=g).double() for _ in range(2))
    total = 0
    for i in range(tokens):
        scores = [float(q[i] @ k[j]) for j in range(tokens)]
        best = [j for j in range(tokens) if scores[j] == max(scores)]
        total += min(abs(i - j) for j in best) if ties == "nearest" else abs(i - best[0])
    assert ap_limits.attention_distance(q, k, ties).item() == pytest.approx(total / tokens)


@settings(max_examples=30, deadline=None)
@given(tokens=strategies.integers(4, 40), data=strategies.data())
def test_lemma_1_holds_without_noise(tokens, data):
    d_a = data.draw(strategies.integers(1, tokens - 1))
    before, after = ap_limits.lemma_1(tokens, d_a, seeds=range(3))
    assert before == pytest.approx((1 + d_a) / tokens) and after == pytest.approx(1 / tokens)


def test_lemma_1_needs_no_noise_nearest_ties_and_weak_attention():
    before, after = ap_limits.lemma_1(32, 8, noise=0.1, seeds=range(20))
    assert before.mean() > 5 and after.mean() > 5  # not 9/32 and 1/32
    assert ap_limits.lemma_1(32, 8, ties="first")[1] > 1
    assert ap_limits.lemma_1(16, 4, beta=math.sqrt(math.log(15)) + 0.01)[1] == pytest.approx(5 / 16)
    assert ap_limits.lemma_1(16, 4, beta=math.sqrt(math.log(15)) - 0.01)[1] == pytest.approx(1 / 16)
    with pytest.raises(BadInput):
        ap_limits.lemma_1(8, 8)


# The symmetric limit, and slopes


@pytest.mark.parametrize("layer", [1, 2])
def test_symmetric_limit_equals_descent_on_all_tokens(layer):
    """Two kinds of tokens stand for all P: the same path as the full model on the four noise-free
    pairs."""
    s = Settings(tokens=6, layer=layer, noise=0.0, dim=4, dtype="float64")
    x, y = ap_toy.assemble(
        s,
        torch.arange(4),
        torch.zeros(4, dtype=torch.long),
        torch.zeros(4, 6, 4, dtype=torch.float64),
    )
    step = 1.2
    limit = ap_limits.population_flow(layer, [6], step=step, max_time=40 * step)[0]
    prompt = torch.zeros(1, 6, 4, dtype=torch.float64)
    for _ in range(round(limit["trace"][-1][0] / step)):
        prompt = prompt - step * ap_toy.gradient(s, x[None], y[None], prompt).mean(1, keepdim=True)
    assert limit["direction"] == pytest.approx(ap_toy.directions(s, prompt)[0].tolist(), abs=1e-10)


@pytest.mark.parametrize("tokens", [8, 16, 32])
@pytest.mark.parametrize("beta", [0.5, 1.0])
def test_tokens_part_at_the_rate_of_the_closed_form(tokens, beta):
    assert ap_limits.split_measured(tokens, beta) == pytest.approx(
        ap_limits.split_rate(tokens, beta), rel=0.06
    )
    with pytest.raises(BadInput):
        ap_limits.split_measured(tokens + 1)


def test_prompts_of_different_tokens_part_in_the_full_model():
    """Descent on all places of all four pairs, without the two groups of `split_measured`: the same
    rate."""
    n = 8
    s = Settings(tokens=n, layer=2, noise=0.0, dim=4, dtype="float64")
    zeros = torch.zeros(4 * n, n, 4, dtype=torch.float64)
    x, y = ap_toy.assemble(
        s, torch.arange(4).repeat_interleave(n), torch.arange(n).repeat(4), zeros
    )
    prompt, own = 1e-5 * torch.randn(1, n, 4, generator=generators(0)[0], dtype=torch.float64), []
    for _ in range(200):
        prompt = prompt - 4 * ap_toy.gradient(s, x[None], y[None], prompt)
        own.append((prompt - prompt.mean(1, keepdim=True)).norm().item())
    assert math.log(own[199] / own[99]) / 400 == pytest.approx(ap_limits.split_rate(n), rel=0.1)
    assert ap_limits.split_direction(n) > 0.9


def test_layer_1_time_tends_to_32_p():
    """Walking to the hinge's edge takes 16 P / (eta (1 + gamma)), sliding along it as long
    again."""
    for gamma in (-0.5, -0.1):
        found = ap_limits.population_flow(1, [128, 512], gamma=gamma)
        scaled = [(1 + gamma) * cell["time"] / cell["tokens"] for cell in found]
        assert 16 < scaled[0] < 32 and scaled[1] == pytest.approx(32, rel=0.07)


def test_layer_2_margin_has_a_ceiling():
    """A huge prompt with equal e1 and e2 parts concentrates the attention and still falls short of
    1/P."""
    s = Settings(tokens=8, layer=2, noise=0.0, dtype="float64")
    x, y, _ = ap_toy.draw(s, generators(0), 8, even=True)
    prompt = torch.tensor([300.0, 300.0, -300.0, -300.0], dtype=torch.float64).expand(8, 4)
    reached = s.tokens * (y * ap_toy.forward(s, x, prompt))
    ceiling = ap_limits.layer_2_ceiling(8, s.beta)
    assert ceiling < 1
    torch.testing.assert_close(reached, torch.full_like(reached, ceiling), atol=1e-6, rtol=0)


def test_slope_recovers_a_power_and_counts_censored_trials():
    fit = ap_limits.slope({p: [2 * p**1.5, 2.0 * p**1.5, None] for p in (8, 16, 32)})
    assert fit["slope"] == pytest.approx(1.5) and fit["censored"] == {8: 1, 16: 1, 32: 1}
    fit = ap_limits.slope({8: [8.0], 16: [16.0], 32: [None]})
    assert fit["slope"] == pytest.approx(1) and fit["left_out"] == [32]
    with pytest.raises(BadInput):
        ap_limits.slope({8: [1.0], 16: [None]})


def test_slope_interval_takes_in_the_looks():
    # every value may lie up to 3 % below the look that found it; of two points the slope can be off
    # by log 1.03 / log 2
    fit = ap_limits.slope({8: [8.0], 16: [16.0]}, looks=1.03)
    off = math.log(1.03) / math.log(2)
    assert (fit["low"], fit["high"]) == (pytest.approx(1 - off), pytest.approx(1 + off))


def test_slope_interval_widens_with_scatter():
    tight, wide = (
        ap_limits.slope({p: [p * f for f in spread] for p in (8, 16)})
        for spread in ([1, 1.01, 0.99], [0.5, 1, 2])
    )
    assert wide["high"] - wide["low"] > 5 * (tight["high"] - tight["low"]) > 0


# Proposition 1


@settings(max_examples=15, deadline=None)
@given(
    batch=strategies.integers(2, 8),
    channels=strategies.integers(2, 16),
    positions=strategies.integers(1, 12),
    seed=strategies.integers(0, 99),
)
def test_proposition_1_is_an_identity_under_its_conditions(batch, channels, positions, seed):
    gaps = normalisation.proposition_1(batch, channels, positions, seed)
    assert gaps["BatchNorm, conditions hold"] < 1e-12
    assert gaps["LayerNorm, conditions hold"] < 1e-12


def test_proposition_1_fails_outside_its_conditions():
    gaps = normalisation.proposition_1()
    outside = [value for name, value in gaps.items() if "differ" in name]
    assert len(outside) == 4 and min(outside) > 0.1
    assert 1e-7 < gaps["LayerNorm, conditions hold, epsilon 1e-5"] < 1e-3
    whole, inside = normalisation.padded_convolution_gaps()
    assert whole > 0.1 and inside < 1e-12
    with pytest.raises(BadInput):
        x = torch.zeros(2, 3, 4, dtype=torch.float64)
        normalisation.tune_batch_norm(x, torch.eye(3, dtype=torch.float64), torch.zeros(3, 4))


def test_normalisation_layers_equal_torch():
    g = generators(0)[0]
    z = torch.randn(4, 6, 5, generator=g, dtype=torch.float64)
    scale, shift = torch.randn(2, 6, generator=g, dtype=torch.float64)
    torch.testing.assert_close(
        normalisation.batch_norm(z, scale, shift, eps=1e-5),
        torch.nn.functional.batch_norm(z, None, None, scale, shift, training=True, eps=1e-5),
    )
    torch.testing.assert_close(
        normalisation.layer_norm(z, scale, shift, eps=1e-5),
        torch.nn.functional.layer_norm(z.mT, (6,), scale, shift, eps=1e-5).mT,
    )


@pytest.mark.parametrize("tokens", [12, 20])
def test_the_smallest_prompt_is_at_the_end_point_and_none_nearer_is(tokens):
    found = ap_end_point.smallest_prompt(tokens, beta=1.5)
    model = Settings(tokens=tokens, layer=2, dim=4, beta=1.5, noise=0.0, dtype="float64")
    assert ap_end_point.least_margin(model, found["direction"]) == pytest.approx(1, abs=1e-6)
    assert ap_end_point.least_margin(model, [0.99 * part for part in found["direction"]]) < 1
    assert 1 < found["preference"] < tokens
    (end,) = ap_end_point.end_of_descent(2, [tokens], beta=1.5)
    assert ap_end_point.least_margin(model, end["direction"]) >= 1 - 1e-12
    assert end["token_norm"] > 0.999 * found["token_norm"]


def test_without_strong_attention_there_is_no_end_point_at_layer_2():
    with pytest.raises(BadInput, match="leaves A57 out of reach at P = 16"):
        ap_end_point.smallest_prompt(16, beta=1.0)


def test_the_sign_of_a80_turns_at_the_square_root_of_one_half():
    below, above = ap_end_point.fourth_parts([0.69, 0.73], 4096)
    assert below[1] < 0 < above[1]
