"""What published recipes ask beside the plain loop is what it says it is, and leaves the plain loop as it was."""

import math
from dataclasses import replace

import pytest
import torch
from conftest import small_vit, tiny_task
from torch.nn import functional as F

import visprompt as vp
from visprompt import BadInput, Recipe
from visprompt.methods import da_vpt, released
from visprompt.training import as_asked, loop

PLAIN = Recipe(epochs=3, batch_size=4, learning_rate=0.1, head_rate=0.1, weight_decay=0.5, standardise=False)


def fitted(recipe, slug="vpt-deep", seed=0, **settings):
    model = vp.build_method(slug, small_vit(), 3, **settings)
    values = loop.fit_as_asked(model, tiny_task(), recipe, seed)
    return model, values


@pytest.mark.parametrize("optimizer", ["adam", "sgd"])
def test_its_own_decays_are_the_optimisers(optimizer):
    recipe = replace(PLAIN, optimizer=optimizer)
    plain = vp.build_method("vpt-deep", small_vit(), 3)
    losses = loop.fit(plain, tiny_task(), recipe, 0)["loss"]
    model, values = fitted(recipe)
    assert values["loss"] == pytest.approx(losses, rel=1e-4) and max(losses) > 0
    torch.testing.assert_close(model.head.weight, plain.head.weight, rtol=1e-3, atol=1e-5)


def test_each_parameter_has_the_decay_that_is_asked_for():
    model = vp.build_method("adaptformer", small_vit(), 3)
    narrow = next(p for p in model.method_parameters() if p.ndim == 1)
    wide = next(p for p in model.method_parameters() if p.ndim == 2)

    def decays(**given):
        steps = as_asked.Steps(model, replace(PLAIN, **given), 12)
        return [steps.decay(p) for p in (model.head.weight, model.head.bias, narrow, wide)]

    assert decays() == [0.5] * 4
    assert decays(head_decay=3.0) == [3.0, 3.0, 0.5, 0.5]
    assert decays(spared="head bias") == [0.5, 0.0, 0.5, 0.5]
    assert decays(spared="one-dimensional", head_decay=3.0) == [3.0, 0.0, 0.0, 0.5]


def test_the_heads_decay_shrinks_the_head_alone():
    strong, weak = (fitted(replace(PLAIN, weight_decay=0.0, head_decay=decay))[0] for decay in (5.0, 0.0))
    assert strong.head.weight.norm() < 0.5 * weak.head.weight.norm()


def test_the_schedule_rises_in_a_line_and_then_goes_down_a_whole_cosine():
    recipe = replace(PLAIN, epochs=10, batch_size=1, warmup=0.2, schedule="warm-up, then cosine")
    steps = as_asked.Steps(vp.build_method("linear-probe", small_vit(), 3), recipe, 10)
    factors = [steps.factor(step) for step in range(100)]
    assert steps.warm == 20 and factors[:20] == pytest.approx([(i + 1) / 20 for i in range(20)])
    assert factors[20] == 1 and factors[60] == pytest.approx(0.5) and factors[20:] == sorted(factors[20:], reverse=True)
    rates = []
    handle = as_asked.register_optimizer_step_pre_hook(lambda o, *_: rates.append([g["lr"] for g in o.param_groups]))
    try:
        with as_asked.within(*(args := (vp.build_method("vpt-deep", small_vit(), 3), tiny_task(), recipe, 0))):
            inner = as_asked.register_optimizer_step_pre_hook(lambda o, *_: rates.append([g["lr"] for g in o.param_groups]))
            loop.fit(*args)
            inner.remove()
    finally:
        handle.remove()
    total = 10 * len(tiny_task().train[1])
    seen = [both[0] for both in rates[1::2]]
    assert len(seen) == total and max(seen) == pytest.approx(0.1)
    assert seen[total // 5 - 1] == pytest.approx(0.1) and seen[-1] < 0.001


def test_drops_are_in_training_alone_and_end_with_the_fit():
    recipe = replace(PLAIN, dropout=0.5, drop_path=0.3)
    model, values = fitted(recipe)
    assert not {"around", "extra", "before_block", "reset"} & (set(vars(model)) | set(vars(model.method)))
    assert values["loss"] == fitted(recipe)[1]["loss"] != fitted(PLAIN)[1]["loss"]
    assert values["loss"] != fitted(recipe, seed=1)[1]["loss"]
    x = torch.randn(2, 3, 16, 16)
    with as_asked.within(model, tiny_task(), recipe, 0):
        model.eval()
        kept = model(x)
        model.method.train()
        assert not torch.equal(model(x), model(x))
    model.eval()
    torch.testing.assert_close(model(x), kept)


@pytest.mark.parametrize("slug, settings", [("vpt-shallow", {}), ("vpt-deep", {"form": "concatenate"})])
def test_prompts_that_travel_are_dropped_for_each_image_apart(slug, settings):
    model = vp.build_method(slug, small_vit(), 3, prompt_tokens=4, **settings)
    x = torch.randn(1, 3, 16, 16).expand(6, -1, -1, -1)
    with as_asked.within(model, tiny_task(), replace(PLAIN, dropout=0.5), 0):
        model.method.train()
        rows = model.features(model.below(x))
    assert len({tuple(row.tolist()) for row in rows.detach()}) > 1


def test_prompts_that_are_keys_and_values_share_one_mask_a_batch():
    model = vp.build_method("vpt-deep", small_vit(), 3, prompt_tokens=4)
    x = torch.randn(1, 3, 16, 16).expand(6, -1, -1, -1)
    with as_asked.within(model, tiny_task(), replace(PLAIN, dropout=0.5), 0):
        model.method.train()
        rows = model.features(model.below(x))
    torch.testing.assert_close(rows, rows[:1].expand_as(rows))


def test_an_adapters_bottleneck_is_dropped_behind_its_activation():
    model = vp.build_method("adaptformer", small_vit(), 3, bottleneck=8)
    part = model.method.adapters[0]
    with torch.no_grad():
        part.up.normal_()
    x = torch.randn(1, 5, 16)
    plain = F.linear(F.relu(F.linear(x, part.down, part.down_bias)), part.up, part.up_bias)
    with as_asked.within(model, tiny_task(), replace(PLAIN, dropout=0.5), 0):
        model.method.train()
        assert not torch.allclose(part(x), plain)
        model.method.eval()
        torch.testing.assert_close(part(x), plain)
    assert part.act is F.relu


@pytest.mark.parametrize("how, bias", [("truncated normal", 0.0), ("VPT's", -math.log(99))])
def test_the_head_starts_as_asked(how, bias):
    model = vp.build_method("linear-probe", small_vit(width=64), 50)
    with as_asked.within(model, tiny_task(), replace(PLAIN, head_start=how), 3):
        model.reset(3)
        first = model.head.weight.clone()
        model.reset(3)
    assert torch.equal(first, model.head.weight) and torch.all(model.head.bias == bias)
    wanted = 0.02 if how == "truncated normal" else math.sqrt(2 / 50)
    assert 0.9 * wanted < first.std() < 1.1 * wanted
    model.reset(3)
    assert model.head.weight.std() < 0.011 and torch.all(model.head.bias == 0)


def test_a_fit_of_the_library_and_its_record_do_what_the_recipe_asks(stores):
    recipe = replace(PLAIN, head_start="truncated normal")
    model = vp.build_method("vpt-deep", small_vit(), 3)
    losses = vp.fit(model, tiny_task(), recipe)["loss"]
    record = vp.tune(vp.build_method("vpt-deep", small_vit(), 3), tiny_task(), recipe)
    assert record.values["loss"] == losses != vp.fit(model, tiny_task(), PLAIN)["loss"]
    assert record.settings["recipe"]["head_start"] == "truncated normal"


@pytest.mark.refused
@pytest.mark.parametrize(
    "given, words",
    [
        ({"dropout": 1.0}, "recipe field dropout must be a number of at least 0 and below 1, not 1.0"),
        ({"drop_path": -0.1}, "must be a number of at least 0 and below 1"),
        ({"head_decay": -1.0}, "head_decay must be a number of at least 0 or None, not -1.0"),
        ({"schedule": "cosin"}, "Did you mean 'cosine'"),
        ({"spared": "biases"}, "Allowed: head bias, nothing, one-dimensional"),
        ({"head_start": 1}, "head_start must be"),
    ],
)
def test_impossible_fields_are_refused(given, words):
    with pytest.raises(BadInput, match=words):
        Recipe(**given)


@pytest.mark.refused
def test_what_cannot_be_dropped_is_said(resnet):
    probe = vp.build_method("linear-probe", small_vit(), 3)
    with pytest.raises(BadInput, match="dropout is of prompts and of adapters, and linear-probe has neither"):
        loop.fit_as_asked(probe, tiny_task(), replace(PLAIN, dropout=0.1), 0)
    network = vp.build_method("linear-probe", resnet, 3)
    with pytest.raises(BadInput, match="drop_path is written for timm's standard ViT blocks; for test_resnet write 0"):
        loop.fit_as_asked(network, tiny_task(), replace(PLAIN, drop_path=0.1), 0)


def test_a_rate_may_move_once_an_epoch():
    recipe = replace(PLAIN, epochs=5, batch_size=2, warmup=0.2, schedule="warm-up, then cosine, by epoch")
    model = vp.build_method("linear-probe", small_vit(), 3)
    steps, smooth = (
        as_asked.Steps(model, replace(recipe, schedule=how), 8)
        for how in ("warm-up, then cosine, by epoch", "warm-up, then cosine")
    )
    assert [steps.factor(step) for step in range(20)] == [smooth.factor(4 * (step // 4)) for step in range(20)]


def released_form(slug, name, **settings):
    """The model, and the open context in which its method does as released code does."""
    model = vp.build_method(slug, small_vit(), 3, **settings)
    return model, as_asked.within(model, tiny_task(), replace(PLAIN, as_released=name), 0)


@pytest.mark.parametrize(
    "slug, name", [(slug, name) for slug, names in released.DIFFERENCES.items() for name in names], ids=lambda part: part
)
def test_what_released_code_does_changes_training_and_ends_with_it(slug, name):
    settings = {"prompt_tokens": 2, "beta": 5.0, "lambda_": 5.0} if "da-vpt" in slug else {}
    first, values = fitted(PLAIN, slug, **settings)
    model, other = fitted(replace(PLAIN, as_released=name), slug, **settings)
    assert type(model.method) is type(first.method)
    if name not in ("normed class means", "cut temperatures"):  # same clusters; no temperature that turned back
        assert values["loss"] != other["loss"]
    assert other["loss"] == fitted(replace(PLAIN, as_released=name), slug, **settings)[1]["loss"]


def test_a_frame_starts_normal_and_key_value_prompts_within_their_bound():
    model, form = released_form("vp", "normal start")
    with form:
        model.reset()
        assert abs(model.method.delta.std() - 1) < 0.1 and model.method.delta.abs().max() > 2
    model, form = released_form("e2vpt", "narrow keys and values", prompt_tokens=4)
    with form:
        model.reset()
        assert 0.1 < model.method.key_values.abs().max() <= 0.137
        assert model.method.prompts[0].abs().max() > 0.137


def test_prompts_start_at_a_25th():
    plain = vp.build_method("da-vpt", small_vit(), 3, prompt_tokens=2)
    model, form = released_form("da-vpt", "small start", prompt_tokens=2)
    with form:
        model.reset()
        for own, usual in zip(model.method.prompts, plain.method.prompts, strict=True):
            torch.testing.assert_close(own, usual / 25)


def test_temperatures_themselves_stay_within_their_bounds():
    model, form = released_form("gate-vpt", "cut temperatures")
    with form, torch.no_grad():
        model.method.temperatures.fill_(20.0)
        model(torch.randn(2, 3, 16, 16))
    assert model.method.temperatures.tolist() == [10.0] * model.source.depth


def test_each_block_draws_images_of_its_own():
    images = torch.randn(40, 3, 16, 16)
    model, form = released_form("spt-deep", "other images", prompt_tokens=3)

    def images_of(method):
        """For each block the images that have one of its prompts among the tokens entering it."""
        found = []
        for index, prompt in enumerate(method.prompts):
            x = model.source.run(model.source.stem(images), stop=index)
            same = (x[:, None] == prompt[None, :, None]).all(-1).any(-1)  # (images, prompts)
            assert same.any(0).all()
            found.append(frozenset(same.any(1).nonzero().flatten().tolist()))
        return found

    with torch.no_grad():
        model.method.prepare(model.source, images, None, torch.Generator().manual_seed(0))
        assert len(set(images_of(model.method))) == 1
        with form:
            model.method.prepare(model.source, images, None, torch.Generator().manual_seed(0))
            assert len(set(images_of(model.method))) == model.source.depth


def test_class_means_pass_a_layer_norm_before_they_are_clustered():
    model, form = released_form("da-vpt", "normed class means", prompt_tokens=2)
    method, task = model.method, tiny_task()
    with form, torch.no_grad():
        method.prepare(model.source, task.train[0].float(), task.train[1], torch.Generator().manual_seed(0))
        torch.testing.assert_close(method.centroids.mean(1), torch.zeros(2), atol=1e-5, rtol=0)
        method.add_features(torch.randn(9, 16) + 5, torch.arange(9) % 3)
        means, before = method.sums / method.counts[:, None], method.centroids.clone()
        method.after_epoch()
        _, nearest = da_vpt.cosine_kmeans(F.layer_norm(means, (16,)), F.layer_norm(before, (16,)), 20)
        assert method.cluster.tolist() == nearest.tolist()


def test_metric_losses_compare_the_class_tokens_query_and_the_mean_patch():
    labels, x = torch.arange(6) % 3, torch.randn(6, 3, 16, 16)
    model, form = released_form("da-vpt", "class query, mean patch", prompt_tokens=2)
    method, last = model.method, model.source.depth - 1
    block = model.source.model.blocks[last]
    with form:
        model.method.train()
        features = model.features(model.below(x))
        given = method.loss(features, labels)
    model.method.eval()
    with torch.no_grad():
        entering = model.source.run(model.source.stem(x), method, stop=last)
        seen = []
        method.watch = lambda index, tokens: seen.append(tokens)
        method.watches = lambda index: True
        model.source.run(entering, method, start=last)
        query = block.attn.qkv(block.norm1(torch.cat([entering[:, 0], method.prompts[last]])))[:, :16]
    mine = method.cluster[labels] == torch.arange(2)[:, None]
    proxies = F.normalize(query[6:], dim=-1)
    terms = [
        weight * da_vpt.proxy_anchor(proxies @ F.normalize(points, dim=-1).T, mine, 0.1, 1 / 32)
        for weight, points in ((0.1, seen[-1][:, method.prefix :].mean(1)), (0.1, query[:6]))
    ]
    torch.testing.assert_close(given.detach(), sum(terms))


def test_a_difference_that_a_method_does_not_have_is_refused():
    with pytest.raises(BadInput, match="Did you mean 'class query'"):
        fitted(replace(PLAIN, as_released="clas query"), "da-vpt", prompt_tokens=2)
    with pytest.raises(BadInput, match="no difference of vpt-deep can be asked for"):
        fitted(replace(PLAIN, as_released="normal start"))
