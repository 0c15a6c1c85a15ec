"""The shallow ViT of Eq. 1 and its data, each against a definition written out here."""

import math
import types

import pytest
import torch
from hypothesis import given, settings, strategies

from visbook.chapters import shallow_attention, shallow_conditions, shallow_runs, shallow_samples
from visbook.theory import shallow_measures, shallow_training, shallow_vit
from visbook.theory.shallow_vit import NAMES, Settings
from visprompt.errors import BadInput

SMALL = dict(tokens=10, neurons=12, relevant=0.4, confusion=0.2, xi=0.5, dtype="float64")
READINGS = [
    {},
    {"output": "own"},
    {"attention": "frozen"},
    {"attention": "none"},
    {"heads": 2},
    {"skip": True},
    {"classes": 4, "patterns": 6},
    {"members": 3},
    {"drop": 0.3},
    {"noisy": 0.5, "drop": 0.5, "drop_what": "noisy"},
]


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def one_trial(s, seed=0, count=4):
    g = generator(seed)
    weights = {name: value.unsqueeze(0) for name, value in shallow_vit.initial(s, g).items()}
    x, y, relevant = shallow_vit.draw(s, g, count)
    return weights, x.unsqueeze(0), y.unsqueeze(0), relevant.unsqueeze(0)


def loop_margin(s, w, x, y):
    """y^T F of Eq. 1 for one sample, token by token and neuron by neuron."""
    total = 0.0
    for l, token in enumerate(x):
        value = []
        for head in range(s.heads):
            if s.attention == "none":
                mixed = token
            else:
                query = w["query"][head] @ token
                scores = torch.stack([(w["key"][head] @ other) @ query for other in x])
                share = scores.exp() / scores.exp().sum()
                mixed = sum(share[i] * x[i] for i in range(len(x)))
            value.append(w["value"][head] @ mixed)
        value = torch.cat(value) + (token if s.skip else 0)
        a = w["output"][l if s.output == "own" else 0]
        for i in range(s.neurons):
            total = total + (y @ a[i]) * torch.relu(w["hidden"][i] @ value)
    return total / len(x)


@pytest.mark.parametrize("reading", READINGS, ids=str)
def test_value_and_gradient_equal_a_plain_loop_and_autograd(reading):
    s = Settings(**SMALL, **reading)
    w, x, y, _ = one_trial(s)
    margin, found = shallow_vit.gradients(s, w, x, y)
    plain = {name: value[0].clone().requires_grad_(name in NAMES) for name, value in w.items()}
    wanted = torch.stack([loop_margin(s, plain, x[0, n], y[0, n]) for n in range(x.shape[1])])
    torch.testing.assert_close(margin[0], wanted.detach(), rtol=1e-12, atol=1e-15)
    loss = torch.relu(1 - wanted).mean()
    for name in NAMES:
        slope = torch.autograd.grad(loss, plain[name], retain_graph=True, allow_unused=True)[0]
        if name in found:
            torch.testing.assert_close(found[name][0], slope, rtol=1e-12, atol=1e-15)
        else:
            assert s.attention != "trained" and name in ("query", "key")


@settings(max_examples=20, deadline=None)
@given(
    n=strategies.integers(2, 8),
    c=strategies.integers(0, 1),
    k=strategies.sampled_from([2, 4]),
    seed=strategies.integers(0, 9),
)
def test_a_sample_has_the_stated_counts_and_the_majority_decides(n, c, k, seed):
    s = Settings(
        tokens=12,
        relevant=n / 12,
        confusion=c / 12,
        patterns=7,
        classes=k,
        noise=0.0,
        dtype="float64",
    )
    x, y, relevant = shallow_vit.draw(s, generator(seed), 8)
    counts = x.sum(1).round().long()  # the patterns are unit vectors: entry j counts pattern j
    assert (counts[:, 7:] == 0).all() and (counts.sum(1) == 12).all()
    winner = counts[:, :k].argmax(1)
    assert (y == torch.tensor(shallow_vit.LABELS[k], dtype=y.dtype)[winner]).all()
    assert (counts.gather(1, winner[:, None]) == n).all() and (relevant.sum(1) == n).all()
    assert (counts[:, :k].sum(1) == n + c).all()
    rest = counts[:, k:7]
    assert (rest.max(1).values - rest.min(1).values <= 1).all()


@pytest.mark.parametrize("members", [2, 3])
def test_pattern_sets_are_close_within_and_apart_between(members):
    s = Settings(
        tokens=12,
        relevant=0.5,
        confusion=0.25,
        members=members,
        spread=0.6,
        noise=0.0,
        dtype="float64",
    )
    p = shallow_vit.patterns(s)
    assert p.shape == (5, members, 10) and p.norm(dim=-1).flatten().tolist() == pytest.approx(
        [1] * 5 * members
    )
    apart = torch.cdist(p.flatten(0, 1), p.flatten(0, 1)).view(5, members, 5, members)
    mine = torch.eye(5, dtype=torch.bool)
    assert apart.amax((1, 3))[mine].tolist() == pytest.approx([0.6] * 5)  # Delta
    assert apart.amin((1, 3))[~mine].min().item() == pytest.approx(2**0.5)  # kappa
    x, y, relevant = shallow_vit.draw(s, generator(), 200)
    distance = (x[:, :, None, None] - p).norm(dim=-1)  # to every vector of every set
    nearest = distance.flatten(2).argmin(-1)
    # without noise a token is one of the vectors
    assert distance.flatten(2).amin(-1).max().item() < 1e-9
    assert (nearest.flatten().bincount(minlength=5 * members) > 0).all()
    which = nearest // members
    votes = torch.stack([(which == k).sum(1) for k in (0, 1)], 1)
    assert (torch.where(votes[:, 0] > votes[:, 1], 1.0, -1.0) == y[:, 0]).all()
    assert (relevant == (which == votes.argmax(1, keepdim=True))).all() and (
        votes.amax(1) == 6
    ).all()


def test_noise_labels_and_drawn_fractions_have_the_stated_distribution():
    s = Settings(
        tokens=20, noise=0.3, relevant=0.4, confusion=0.1, fractions="drawn", dtype="float64"
    )
    x, y, relevant = shallow_vit.draw(s, generator(), 4000)
    p = shallow_vit.patterns(s)[:, 0]
    torch.testing.assert_close(p @ p.T, torch.eye(5, dtype=p.dtype))
    free = x[..., s.patterns :]  # directions without a pattern hold noise alone
    assert free.std().item() == pytest.approx(0.3, rel=0.01) and abs(free.mean().item()) < 2e-3
    assert relevant.double().mean().item() == pytest.approx(0.4, abs=0.01)
    assert abs(y.mean().item()) < 0.06
    _, even, _ = shallow_vit.draw(s.__class__(tokens=20), generator(), 6, even=True)
    assert even[:, 0].tolist() == [1, -1] * 3
    s = Settings(tokens=20, noisy=0.25, loud=2.0, dtype="float64")
    spread = shallow_vit.draw(s, generator(), 500)[0][..., s.patterns :].std(-1)
    assert (spread > 0.3).double().mean().item() == pytest.approx(0.25, abs=0.01)


def test_dropping_removes_what_it_names():
    s = Settings(tokens=20, relevant=0.4, confusion=0.2, drop=0.6, noise=0.0, dtype="float64")
    x, _, relevant = shallow_vit.draw(s, generator(), 6)
    assert x.shape == (6, 8, 10) and relevant.all()
    s = Settings(tokens=20, noisy=0.5, drop=0.5, drop_what="noisy", noise=0.0, dtype="float64")
    x, _, _ = shallow_vit.draw(s, generator(), 6)
    assert x.shape == (6, 10, 10) and ((x == 0) | (x == 1)).all()


@pytest.mark.parametrize("size", [0.0, 0.02, 0.1, 0.4, 0.8])
@pytest.mark.parametrize("reading", [{}, {"heads": 2}, {"patterns": 12, "dim": 12}], ids=str)
def test_the_start_satisfies_assumption_1(size, reading):
    s = Settings(dtype="float64", sigma=size, delta=size / 2, **reading)
    w = shallow_vit.initial(s, generator())
    p, eye = w["features"], torch.eye(s.dim, dtype=torch.float64).expand(s.heads, s.dim, s.dim)
    torch.testing.assert_close(p.mT @ p, eye)
    for name, basis, most in (("value", p, size), ("query", eye, size / 2), ("key", eye, size / 2)):
        assert torch.linalg.matrix_norm(w[name], 2).max() <= 1 + 1e-12
        error = (w[name] - basis)[..., : s.patterns].norm(dim=1)
        assert error.amax(1).tolist() == pytest.approx([most] * s.heads, abs=1e-12)
        assert size == 0 or error.min() > 0.2 * most
    assert w["output"].abs().unique().tolist() == pytest.approx([1000**-0.5])


def test_the_printed_start_is_as_printed():
    s = Settings(start="printed", dtype="float64")
    w = shallow_vit.initial(s, generator())
    torch.testing.assert_close(w["query"][0], 400 * torch.eye(s.dim, dtype=torch.float64))
    torch.testing.assert_close(w["value"][0], 100 * w["features"][0])


def small_page(**more):
    """A page with nothing but its parameters, as `Runs` needs it."""
    return types.SimpleNamespace(settings=shallow_runs.TrialParameters(**more), artifacts={})


@pytest.mark.parametrize(
    "kept, wanted", [({"a", "b"}, "paper"), ({"a"}, "quick"), (set(), "quick")]
)
def test_a_quick_page_takes_runs_of_the_papers_size_where_all_of_them_are_kept(kept, wanted):
    wanted = len(shallow_runs.PROFILE[wanted]["seeds"])

    def job(name):
        return lambda p, run=True: len(p.seeds) if run or name in kept else None

    runs = shallow_runs.Runs(small_page())
    runs.compute({"a": job("a"), "b": job("b")})
    assert [runs["a"], runs["b"]] == [wanted, wanted]
    own = shallow_runs.Runs(small_page(seeds=[0, 1, 2]))  # what a reader asks for goes first
    own.compute({"a": job("a"), "b": job("b")})
    assert [own["a"], own["b"]] == [3, 3]


def test_the_hinge_has_no_gradient_beyond_a_margin_of_one():
    s = Settings(**SMALL)
    w, x, y, _ = one_trial(s)
    margin, _ = shallow_vit.gradients(s, w, x, y)
    y = y * margin.sign().unsqueeze(-1)  # every sample on its right side
    w["output"] = w["output"] * (1.01 / margin.abs().min())
    assert all((g == 0).all() for g in shallow_vit.gradients(s, w, x, y)[1].values())
    w["output"] = w["output"] * 0.9
    assert any((g != 0).any() for g in shallow_vit.gradients(s, w, x, y)[1].values())


@pytest.mark.parametrize("output", ["shared", "own"])
def test_training_is_sgd_on_the_hinge_loss(output):
    s = Settings(
        **{**SMALL, "neurons": 8}, output=output, batch=3, test_size=4, max_steps=6, run_on=True
    )
    g = generator(3)
    w = shallow_vit.initial(s, g)
    held_out, batches = shallow_vit.draw(s, g, 4, even=True), shallow_training._Batches(s, g)
    for x, y in zip(*(part[: s.max_steps] for part in batches.block())):
        plain = {name: value.clone().requires_grad_(name in NAMES) for name, value in w.items()}
        loss = torch.stack(
            [torch.relu(1 - loop_margin(s, plain, x[n], y[n])) for n in range(3)]
        ).mean()
        slopes = torch.autograd.grad(loss, [plain[name] for name in NAMES])
        w |= {name: (plain[name] - s.step * slope).detach() for name, slope in zip(NAMES, slopes)}
    wanted = [
        max(0.0, 1 - loop_margin(s, w, held_out[0][n], held_out[1][n]).item()) for n in range(4)
    ]
    (found,) = shallow_training.run_trials([(s, 3)])
    assert (
        found["loss"] == pytest.approx(sum(wanted) / 4, rel=1e-10)
        and found["trace"]["loss"][0] != found["loss"]
    )


def plain_margin(s, w, x, y):
    """y^T F of Eq. 1 `(B,)` for one head and samples x `(B, L, d)`, in one line a factor."""
    scores = (x @ w["query"][0].T) @ (x @ w["key"][0].T).mT
    value = (scores.softmax(-1) @ x) @ w["value"][0].T
    neurons = torch.relu(value @ w["hidden"].T)
    return ((neurons * w["output"][..., 0]).sum(-1) * y).mean(1)


@pytest.mark.parametrize("output", ["shared", "own"])
def test_trials_in_float32_end_at_the_step_of_plain_sgd(output):
    s = Settings(
        neurons=40, output=output, batch=4, tokens=20, max_steps=60, check_growth=1.0001, step=1.0
    )
    trials = [(s, seed) for seed in range(4)]
    for (_, seed), found in zip(trials, shallow_training.run_trials(trials)):
        g = generator(seed)
        w = shallow_vit.initial(s, g)
        held_out, batches, steps = (
            shallow_vit.draw(s, g, s.test_size, even=True),
            shallow_training._Batches(s, g),
            [],
        )
        blocks = [batches.block() for _ in range(2)]
        for x, y in zip(*(torch.cat(part) for part in zip(*blocks))):
            steps.append(torch.relu(1 - plain_margin(s, w, *held_out[:2])).mean().item() < s.goal)
            if steps[-1] or len(steps) > s.max_steps:
                break
            plain = {name: w[name].clone().requires_grad_() for name in NAMES}
            loss = torch.relu(1 - plain_margin(s, w | plain, x, y)).mean()
            w |= {
                n: (plain[n] - s.step * slope).detach()
                for n, slope in zip(NAMES, torch.autograd.grad(loss, plain.values()))
            }
        assert found["steps"] == (len(steps) - 1 if steps[-1] else None)


@pytest.mark.parametrize("samples", [0, 20])
def test_a_block_holds_the_batches_of_single_steps(samples):
    s = Settings(**SMALL, samples=samples, batch=8)
    batches, g = shallow_training._Batches(s, generator(5)), generator(5)
    blocks = [batches.block() for _ in range(2)]
    found = torch.cat([x for x, _ in blocks]).flatten(0, 1)
    wanted = []
    if samples:
        x = shallow_vit.draw(s, g, samples)[0]
    while len(wanted) * s.batch < len(found):
        if not samples:
            x = shallow_vit.draw(s, g, shallow_training.BLOCK * s.batch)[0]
        wanted += list(x[torch.randperm(len(x), generator=g)].split(s.batch))[: len(x) // s.batch]
    assert torch.equal(found, torch.cat(wanted)[: len(found)])


@pytest.mark.parametrize("more", [{}, {"run_on": True}, {"noise": 0.5}], ids=str)
def test_a_glance_changes_no_result(more):
    s = Settings(**{**SMALL, "neurons": 30, "xi": 0.01, "confusion": 0.0, "max_steps": 60}, **more)
    trials = [(s, seed) for seed in range(3)]
    whole, quick, some = (
        shallow_training.run_trials(trials, keep=keep) for keep in (None, (), ("loss",))
    )
    for a, b, c in zip(whole, quick, some):
        assert a["trace"]["loss"] == c["trace"].pop("loss") and b["trace"] == c["trace"] == {}
        for one in (b, c):
            assert (one["steps"], one["loss"], one["error"]) == (a["steps"], a["loss"], a["error"])


@pytest.mark.parametrize("samples", [0, 24])
def test_a_trial_does_not_depend_on_its_company(samples):
    s = Settings(**{**SMALL, "neurons": 30, "xi": 0.01}, samples=samples, max_steps=60, batch=4)
    other = Settings(
        **{**SMALL, "neurons": 30, "xi": 0.01, "confusion": 0.0},
        samples=samples,
        max_steps=60,
        batch=4,
    )
    pairs = [(s, 0), (other, 0), (s, 1), (other, 1)]
    together = shallow_training.run_trials(pairs)
    # they leave the batch at different times
    assert len({result["steps"] for result in together}) > 1
    for pair, result in zip(pairs, together):
        alone = shallow_training.run_trials([pair])[0]
        assert alone["steps"] == result["steps"]
        assert alone["loss"] == pytest.approx(result["loss"], abs=1e-12)
        assert alone["trace"]["attention"] == pytest.approx(result["trace"]["attention"])
    chunked = shallow_training.run_trials(pairs, memory=1)
    assert [r["steps"] for r in chunked] == [r["steps"] for r in together]


def test_attention_stays_where_it_is_not_trained():
    s = Settings(**{**SMALL, "xi": 0.01}, attention="frozen", max_steps=30, run_on=True)
    trained = Settings(**{**SMALL, "xi": 0.01}, max_steps=30, run_on=True)
    still, moved = (
        shallow_training.run_trials([(each, 0)])[0]["trace"]["attention"] for each in (s, trained)
    )
    assert len(set(still)) == 1 and moved[0] == still[0] and moved[-1] > moved[0]


def test_on_relevant_sums_the_attention_of_eq_15():
    s = Settings(**SMALL)
    w, x, _, relevant = one_trial(s)
    total = 0.0
    for tokens, mine in zip(x[0], relevant[0]):
        for token in tokens:
            scores = (tokens @ w["key"][0, 0].T) @ (w["query"][0, 0] @ token)
            total += torch.softmax(scores, 0)[mine].sum().item()
    assert shallow_vit.on_relevant(shallow_vit.attend(s, w, x), relevant).item() == pytest.approx(
        total / (4 * 10)
    )


def test_lucky_neurons_grow_and_stay_as_they_are_moved():
    s = Settings(**{**SMALL, "neurons": 400})
    w, x, y, relevant = one_trial(s)
    seen = shallow_measures.growth(s, w, w, (x, y, relevant))
    assert seen["kept"].item() == seen["kept_sign"].item() == 1
    assert seen["lucky_grown"].item() == seen["others_grown"].item() == 0
    sign = w["output"][:, 0, :, 0].sign()
    p1, p2 = w["features"][:, 0, :, 0], w["features"][:, 0, :, 1]
    push = torch.where(sign[..., None] > 0, p1, p2)
    later = {**w, "hidden": w["hidden"] + 3 * push}
    moved = shallow_measures.growth(s, later, w, (x, y, relevant))
    assert moved["lucky_grown"].item() == pytest.approx(3)
    torch.testing.assert_close(moved["lucky_rest"], seen["lucky_rest"])
    assert moved["kept_sign"].item() == 1 > moved["kept"].item()  # those of the other sign go over


def test_attention_by_kind_of_query_averages_to_eq_15():
    s = Settings(**SMALL)
    w, x, y, relevant = one_trial(s)
    parts = shallow_measures.by_query(s, w, w, (x, y, relevant))
    mean = 0.4 * parts["from_relevant"] + 0.2 * parts["from_confusion"] + 0.4 * parts["from_rest"]
    torch.testing.assert_close(mean, shallow_vit.on_relevant(shallow_vit.attend(s, w, x), relevant))


def test_start_bounds_hold_where_the_key_and_query_are_exact():
    exact = Settings(**{**SMALL, "noise": 0.0}, delta=0.0)
    assert shallow_measures.attention_bounds(exact, [0, 1]) in (0.0, 1.0)


def test_shares_of_lucky_neurons():
    found = shallow_measures.lucky_shares(5, 10, 0.1, 40_000, seed=0)
    assert found["nearest"] == pytest.approx(1 / 5, abs=0.01)
    assert found["definition"] < 1e-3 < found["proof"] < found["nearest"]


def test_all_of_many_trials_is_a_share_with_an_interval():
    assert shallow_runs.share_of(20, 20) == (100, pytest.approx(83.2, abs=0.1), 100)


def test_what_is_left_at_a_step_of_1_says_nothing_of_its_power():
    # eta^2 below 1, and at 1 whatever
    left = {0.05: 0.0025, 0.1: 0.01, 0.25: 0.0625, 0.5: 0.25, 1.0: 0.01}
    cells = {
        name: [[{"trace": {"attention": [1 - left[eta]]}}] for eta in etas]
        for name, etas in (
            ("small steps", shallow_attention.SMALL_STEPS),
            ("steps", shallow_attention.STEPS),
        )
    }
    looks = types.SimpleNamespace(runs=types.SimpleNamespace(cells=cells.get))
    looks.last = lambda: shallow_attention.Attention.last(looks)
    assert shallow_attention.Attention.step_powers(looks) == [pytest.approx(2)]


def test_hoeffding_constants_are_positive_and_at_most_the_limit_of_many_terms():
    found = shallow_measures.hoeffding(50, seed=0, samples=20_000)
    assert all(0 < value < 3 for value in found.values())


def test_the_runs_that_are_judged_meet_every_condition_that_can_be_said():
    cells = [
        vars(Settings(output="own", relevant=alpha, **shallow_samples.MET))
        for alpha in shallow_samples.INSIDE
    ]
    record = types.SimpleNamespace(settings={"cells": cells, "seeds": [0]})
    assert {*shallow_conditions.conditions(record)["met?"]} == {"yes", "cannot be said"}


def test_a_power_is_found_and_censored_trials_are_left_out():
    values = {k: [k**2, 1.1 * k**2, 1.2 * k**2, None] for k in (1.0, 2.0, 4.0)} | {8.0: [None] * 4}
    fit = shallow_measures.power(values)
    assert (
        fit["slope"] == pytest.approx(2)
        and fit["low"] <= 2 <= fit["high"]
        and fit["used"] == [1.0, 2.0, 4.0]
    )
    # trials that agree to the step are still known to a look alone
    fit = shallow_measures.power({1.0: [10.0] * 3, 2.0: [20.0] * 3})
    assert fit["high"] - 1 == pytest.approx(1 - fit["low"]) == pytest.approx(math.log(1.05, 2))
    with pytest.raises(BadInput):
        shallow_measures.power({1.0: [1.0], 2.0: [None]})


@pytest.mark.refused
@pytest.mark.parametrize(
    "wrong",
    [
        {"start": "random"},
        {"attention": "off"},
        {"classes": 3},
        {"members": 0},
        {"members": 2, "spread": 1.5},
        {"members": 2, "patterns": 6},
        {"patterns": 2},
        {"dim": 4},
        {"relevant": 0.2, "confusion": 0.2},
        {"relevant": 0.8, "confusion": 0.3},
        {"drop": 0.6},
        {"heads": 2, "skip": True},
        {"samples": 4},
        {"step": 0.0},
        {"noise": 0.0, "start": "printed"},
        {"noisy": 1.5},
        {"tokens": 1},
        {"fractions": "drawn", "drop": 0.1},
        {"drop_what": "noisy", "drop": 0.1},
    ],
    ids=str,
)
def test_bad_settings_are_refused(wrong):
    with pytest.raises(BadInput):
        Settings(**wrong)


def test_a_chunk_takes_its_room_from_what_is_free(monkeypatch):
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (10 * 2**30, 80 * 2**30))
    assert shallow_training.room("cuda:0") == 5 * 2**30
    assert shallow_training.room("cpu") == shallow_training.MEMORY
    sizes = []
    monkeypatch.setattr(
        shallow_training, "_run_chunk", lambda part, *_: sizes.append(len(part)) or [{}] * len(part)
    )
    s = Settings(neurons=100)  # 2 x 16 samples x 50 tokens x (100 + 50) numbers of 4 bytes
    monkeypatch.setattr(shallow_training, "room", lambda device: 3 * 960_000)
    assert len(shallow_training.run_trials([(s, seed) for seed in range(7)])) == 7
    assert sizes == [3, 3, 1]


def test_trials_that_cannot_share_a_batch_are_refused():
    with pytest.raises(BadInput, match="neurons"):
        shallow_training.run_trials([(Settings(), 0), (Settings(neurons=10), 0)])
    with pytest.raises(BadInput):
        shallow_training.run_trials([])
    with pytest.raises(BadInput, match="loss"):
        shallow_training.run_trials([(Settings(neurons=10, max_steps=1), 0)], keep=["losss"])
