"""What published recipes ask beside the plain loop is what it says it is, and leaves the plain loop
as it was."""

import functools
import math
from dataclasses import replace

import pytest
import torch
from conftest import small_vit, tiny_task
from torch.nn import functional as F

import visprompt as vp
from visbook.timing import clock
from visprompt import BadInput, Recipe
from visprompt.methods import da_vpt, released
from visprompt.records import store, watching
from visprompt.training import loop, recipe_extras

PLAIN = Recipe(
    epochs=3, batch_size=4, learning_rate=0.1, head_rate=0.1, weight_decay=0.5, standardise=False
)


def fitted(recipe, slug="vpt-deep", seed=0, **settings):
    model = vp.build_method(slug, small_vit(), 3, **settings)
    values = loop.fit_with_extras(model, tiny_task(), recipe, seed)
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
        steps = recipe_extras.Steps(model, replace(PLAIN, **given), 12)
        return [steps.decay(p) for p in (model.head.weight, model.head.bias, narrow, wide)]

    assert decays() == [0.5] * 4
    assert decays(head_decay=3.0) == [3.0, 3.0, 0.5, 0.5]
    assert decays(spared="head bias") == [0.5, 0.0, 0.5, 0.5]
    assert decays(spared="one-dimensional", head_decay=3.0) == [3.0, 0.0, 0.0, 0.5]


def test_the_heads_decay_shrinks_the_head_alone():
    strong, weak = (
        fitted(replace(PLAIN, weight_decay=0.0, head_decay=decay))[0] for decay in (5.0, 0.0)
    )
    assert strong.head.weight.norm() < 0.5 * weak.head.weight.norm()


def test_the_schedule_rises_in_a_line_and_then_goes_down_a_whole_cosine():
    recipe = replace(PLAIN, epochs=10, batch_size=1, warmup=0.2, schedule="warm-up, then cosine")
    steps = recipe_extras.Steps(vp.build_method("linear-probe", small_vit(), 3), recipe, 10)
    factors = [steps.factor(step) for step in range(100)]
    assert steps.warm == 20 and factors[:20] == pytest.approx([(i + 1) / 20 for i in range(20)])
    assert (
        factors[20] == 1
        and factors[60] == pytest.approx(0.5)
        and factors[20:] == sorted(factors[20:], reverse=True)
    )
    rates = []
    handle = recipe_extras.register_optimizer_step_pre_hook(
        lambda o, *_: rates.append([g["lr"] for g in o.param_groups])
    )
    try:
        with recipe_extras.within(
            *(args := (vp.build_method("vpt-deep", small_vit(), 3), tiny_task(), recipe, 0))
        ):
            inner = recipe_extras.register_optimizer_step_pre_hook(
                lambda o, *_: rates.append([g["lr"] for g in o.param_groups])
            )
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
    assert not {"around", "extra", "before_block", "reset"} & (
        set(vars(model)) | set(vars(model.method))
    )
    assert values["loss"] == fitted(recipe)[1]["loss"] != fitted(PLAIN)[1]["loss"]
    assert values["loss"] != fitted(recipe, seed=1)[1]["loss"]
    x = torch.randn(2, 3, 16, 16)
    with recipe_extras.within(model, tiny_task(), recipe, 0):
        model.eval()
        kept = model(x)
        model.method.train()
        assert not torch.equal(model(x), model(x))
    model.eval()
    torch.testing.assert_close(model(x), kept)


@pytest.mark.parametrize(
    "slug, settings", [("vpt-shallow", {}), ("vpt-deep", {"form": "concatenate"})]
)
def test_prompts_that_travel_are_dropped_for_each_image_apart(slug, settings):
    model = vp.build_method(slug, small_vit(), 3, prompt_tokens=4, **settings)
    x = torch.randn(1, 3, 16, 16).expand(6, -1, -1, -1)
    with recipe_extras.within(model, tiny_task(), replace(PLAIN, dropout=0.5), 0):
        model.method.train()
        rows = model.features(model.below(x))
    assert len({tuple(row.tolist()) for row in rows.detach()}) > 1


def test_prompts_that_are_keys_and_values_share_one_mask_a_batch():
    model = vp.build_method("vpt-deep", small_vit(), 3, prompt_tokens=4)
    x = torch.randn(1, 3, 16, 16).expand(6, -1, -1, -1)
    with recipe_extras.within(model, tiny_task(), replace(PLAIN, dropout=0.5), 0):
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
    with recipe_extras.within(model, tiny_task(), replace(PLAIN, dropout=0.5), 0):
        model.method.train()
        assert not torch.allclose(part(x), plain)
        model.method.eval()
        torch.testing.assert_close(part(x), plain)
    assert part.act is F.relu


@pytest.mark.parametrize("how, bias", [("truncated normal", 0.0), ("VPT's", -math.log(99))])
def test_the_head_starts_as_asked(how, bias):
    model = vp.build_method("linear-probe", small_vit(width=64), 50)
    with recipe_extras.within(model, tiny_task(), replace(PLAIN, head_start=how), 3):
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
        (
            {"dropout": 1.0},
            "recipe field dropout must be a number of at least 0 and below 1, not 1.0",
        ),
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
    with pytest.raises(
        BadInput, match="dropout is of prompts and of adapters, and linear-probe has neither"
    ):
        loop.fit_with_extras(probe, tiny_task(), replace(PLAIN, dropout=0.1), 0)
    network = vp.build_method("linear-probe", resnet, 3)
    with pytest.raises(
        BadInput,
        match="drop_path is written for timm's standard ViT blocks; for test_resnet write 0",
    ):
        loop.fit_with_extras(network, tiny_task(), replace(PLAIN, drop_path=0.1), 0)
    with pytest.raises(
        BadInput,
        match="compile is tried on timm's standard ViT blocks alone; for test_resnet write False",
    ):
        loop.fit_with_extras(network, tiny_task(), replace(PLAIN, compile=True), 0)


def test_a_rate_may_move_once_an_epoch():
    recipe = replace(
        PLAIN, epochs=5, batch_size=2, warmup=0.2, schedule="warm-up, then cosine, by epoch"
    )
    model = vp.build_method("linear-probe", small_vit(), 3)
    steps, smooth = (
        recipe_extras.Steps(model, replace(recipe, schedule=how), 8)
        for how in ("warm-up, then cosine, by epoch", "warm-up, then cosine")
    )
    assert [steps.rate(1.0, step) for step in range(20)] == [
        smooth.rate(1.0, 4 * (step // 4)) for step in range(20)
    ]


@pytest.mark.parametrize("size, counts", [(4, {2}), (8, {2, 4}), (5, {1, 2})])
def test_a_batch_by_class_has_two_images_of_each_of_its_classes(size, counts, monkeypatch):
    seen, model = [], vp.build_method("linear-probe", small_vit(), 3)
    loss = model.training_loss
    monkeypatch.setattr(model, "training_loss", lambda x, y: seen.append(y) or loss(x, y))
    recipe = replace(PLAIN, batch_size=size, batches="by class")
    values = loop.fit_with_extras(model, tiny_task(), recipe, 0)
    assert sum(map(len, seen)) == 3 * 24
    whole = [labels for labels in seen if len(labels) == size]
    assert {n for labels in whole for n in labels.bincount().tolist() if n} == counts
    assert values["loss"] == fitted(recipe, "linear-probe")[1]["loss"]
    assert values["loss"] != fitted(replace(recipe, batches="shuffled"), "linear-probe")[1]["loss"]


def test_a_class_with_one_image_comes_twice():
    rows = [torch.tensor([7]), torch.tensor([1, 2, 3])]
    batch = recipe_extras.two_of_each(rows, 4, torch.Generator().manual_seed(0))
    assert (batch == 7).sum() == 2 and len({*batch.tolist()}) == 3


def test_gradients_are_clipped_entry_by_entry():
    model = vp.build_method("linear-probe", small_vit(), 3)
    steps = recipe_extras.Steps(model, replace(PLAIN, clip=0.5, weight_decay=0.0), 24)
    optimizer = torch.optim.SGD(model.head.parameters(), lr=0.1)
    model.head.weight.grad = torch.full_like(model.head.weight, -3.0)
    model.head.bias.grad = torch.full_like(model.head.bias, 0.2)
    steps(optimizer, (), {})
    assert torch.all(model.head.weight.grad == -0.5) and torch.all(model.head.bias.grad == 0.2)


def released_form(slug, name, **settings):
    """The model, and the open context in which its method does as released code does."""
    model = vp.build_method(slug, small_vit(), 3, **settings)
    return model, recipe_extras.within(model, tiny_task(), replace(PLAIN, as_released=name), 0)


ALL = [
    (slug, name, kind)
    for slug, kinds in released.DIFFERENCES.items()
    for name, kind in kinds.items()
]
FORMS = [(slug, name) for slug, name, kind in ALL if issubclass(kind, released.Form)]
IN_TRAINING = [(slug, name) for slug, name, _ in ALL if (slug, name) not in FORMS]


def settings_for(slug, name=""):
    """Settings with which a difference shows on a small network."""
    if "da-vpt" in slug:
        return {"prompt_tokens": 2, "beta": 5.0, "lambda_": 5.0}
    if slug.endswith("-deep") and name == "averaged prompts":
        return {"prompt_tokens": 2, "form": "concatenate"}
    return {"prompt_tokens": 3, "segments": 4, "kept_at_least": 1} if slug == "e2vpt" else {}


@pytest.mark.parametrize("slug, name", IN_TRAINING)
def test_what_released_code_does_changes_training_and_ends_with_it(slug, name):
    settings = settings_for(slug)
    first, values = fitted(PLAIN, slug, **settings)
    model, other = fitted(replace(PLAIN, as_released=name), slug, **settings)
    assert type(model.method) is type(first.method)
    # same clusters, of three classes; no temperature that turned back
    if name != "cut temperatures" and "clusters" not in name and "means" not in name:
        assert values["loss"] != other["loss"]
    assert other["loss"] == fitted(replace(PLAIN, as_released=name), slug, **settings)[1]["loss"]


@pytest.mark.parametrize("slug, name", FORMS)
def test_a_form_stays_with_the_model_that_was_fitted_and_with_its_file(slug, name, tmp_path):
    backbone, x = small_vit("avg"), torch.randn(2, 3, 16, 16)
    model = vp.build_method(slug, backbone, 3, **settings_for(slug, name))
    other = loop.fit_model(model, tiny_task(), replace(PLAIN, as_released=name))
    assert released.form_of(model) == name
    vp.save_method(model, tmp_path / "own.safetensors")
    again = vp.load_method(tmp_path / "own.safetensors", backbone)
    logits = model(x)
    assert torch.equal(again(x), logits)
    released.take(model, [])
    assert not torch.equal(model(x), logits)
    plain = loop.fit_model(again, tiny_task(), PLAIN)  # asks for the method as its paper has it
    assert released.form_of(again) == "" and plain["loss"] != other["loss"]
    fresh = vp.build_method(slug, backbone, 3, **settings_for(slug, name))
    assert plain["loss"] == loop.fit_model(fresh, tiny_task(), PLAIN)["loss"]


def with_form(slug, name, **settings):
    """A model of noise, on a backbone that averages, which does as released code does."""
    model = vp.build_method(slug, small_vit("avg"), 3, **settings).double()
    model.source.double()
    with torch.no_grad():
        for parameter in model.method_parameters():
            parameter.normal_()
    released.take(model, released.named(slug, name))
    return model.eval(), torch.randn(2, 3, 16, 16, dtype=torch.float64)


def through(model, x, prompts, change=lambda index, x: x):
    """Tokens (B, N, D) with N_p prompts in front through timm's own blocks: all that comes out,
    normed."""
    x = torch.cat([prompts.expand(len(x), -1, -1), x], 1)
    for index, block in enumerate(model.source.model.blocks):
        x = block(change(index, x))
    return model.source.model.norm(x)


@pytest.mark.parametrize("slug", ["vpt-shallow", "spt-shallow"])
def test_prompts_that_travel_are_averaged_with_the_patches(slug):
    model, x = with_form(slug, "averaged prompts", prompt_tokens=3)
    out = through(model, model.source.stem(x), model.method.prompts)
    torch.testing.assert_close(model.features(model.below(x)), out.mean(1))


@pytest.mark.parametrize("slug", ["vpt-deep", "spt-deep"])
def test_the_last_blocks_prompts_are_averaged_with_the_patches(slug):
    model, x = with_form(slug, "averaged prompts", prompt_tokens=3, form="concatenate")
    prompts = model.method.prompts

    def renewed(index, x):
        return torch.cat([prompts[index].expand(len(x), -1, -1), x[:, 3:]], 1)

    out = through(model, model.source.stem(x), prompts[0], renewed)
    torch.testing.assert_close(model.features(model.below(x)), out.mean(1))


def test_provps_prompts_keep_a_hundredth_of_what_came_out():
    model, x = with_form("provp", "mostly new", prompt_tokens=3)

    def mixed(index, x):
        return (
            x
            if index == 0
            else torch.cat([0.01 * x[:, :3] + 0.99 * model.method.added[index - 1], x[:, 3:]], 1)
        )

    out = through(model, model.source.stem(x), model.method.prompts, mixed)
    torch.testing.assert_close(model.features(model.below(x)), out[:, 3:].mean(1))


def test_adaptformers_bottleneck_reads_what_enters_the_norm():
    model, x = with_form("adaptformer", "before the norm", bottleneck=4)
    out = model.source.stem(x)
    for block, adapter in zip(model.source.model.blocks, model.method.adapters, strict=True):
        out = out + block.attn(block.norm1(out))
        out = out + block.mlp(block.norm2(out)) + 0.1 * adapter(out)
    torch.testing.assert_close(model.features(model.below(x)), model.source.model.norm(out).mean(1))


def test_pieces_are_each_sixteenth_number_scores_keep_their_sign_and_blocks_share_a_mask():
    settings = {"prompt_tokens": 3, "segments": 4, "kept_at_least": 1}
    model, x = with_form("e2vpt", "strided pieces", **settings)
    method = model.method
    method.segment_mask.bernoulli_(0.5)
    kept = method.segment_mask[1][:, torch.arange(16) % 4]
    torch.testing.assert_close(method.entering(1), method.prompts[1] * kept)
    found = {}
    for name in ("strided pieces", "strided pieces, signed score", "signed score, one mask"):
        model, _ = with_form("e2vpt", name, **settings)
        with torch.no_grad():
            for number, parameter in enumerate(model.method_parameters()):
                parameter.copy_(
                    torch.randn(parameter.shape, generator=torch.Generator().manual_seed(number))
                )
        model.method.train()
        model.training_loss(model.features(model.below(x)), torch.tensor([0, 1])).backward()
        found[name] = model.method.importance[0].clone()
    sized, signed, _ = found.values()
    torch.testing.assert_close(signed.abs(), sized)
    assert (signed < 0).any() and (sized >= 0).all()
    model.method.prune()()
    tokens, pieces = model.method.masks()
    assert (tokens == tokens[0]).all() and (pieces == pieces[0]).all() and 0 < tokens.mean() < 1
    best = model.method.importance[0].sum(0).topk(2).indices
    assert sorted(tokens[0].nonzero().flatten().tolist()) == sorted(best.tolist())


@pytest.mark.parametrize(
    "slug, start", [("spt-shallow", "random"), ("spt-deep", "random"), ("spt-deep", "mean")]
)
def test_prompts_of_block_0_start_as_tokens_without_their_position(slug, start):
    images = torch.randn(40, 3, 16, 16)
    plain = vp.build_method(slug, small_vit(), 3, prompt_tokens=3, start=start)
    model, form = released_form(slug, "bare tokens", prompt_tokens=3, start=start)
    position = model.source.model.pos_embed.clone()
    plain.method.prepare(plain.source, images, None, torch.Generator().manual_seed(0))
    with form:
        model.method.prepare(model.source, images, None, torch.Generator().manual_seed(0))
    assert torch.equal(model.source.model.pos_embed, position)
    (first, *rest), (usual, *others) = (list(m.method.parameters()) for m in (model, plain))
    assert all(torch.equal(a, b) for a, b in zip(rest, others, strict=True)) and not torch.allclose(
        first, usual
    )
    if start == "random":
        bare = model.source.model.patch_embed(images).flatten(0, 1)
        own, with_position = (
            (part[:, None] - bare).norm(dim=-1).amin(1) for part in (first, usual)
        )
        assert own.max() < 1e-5 < with_position.min()


@pytest.mark.parametrize(
    "slug",
    ["linear-probe", "full-finetune", "vpt-deep", "gate-vpt", "e2vpt", "ivpt", "da-vpt", "lora"],
)
def test_a_compiled_network_learns_the_same(slug, monkeypatch):
    """Traced, but without a compiler's own arithmetic, which a machine may lack."""
    monkeypatch.setattr(torch, "compile", functools.partial(torch.compile, backend="aot_eager"))
    plain, other = (
        fitted(replace(PLAIN, compile=way), slug, **settings_for(slug))[1] for way in (False, True)
    )
    assert (
        other["loss"] == pytest.approx(plain["loss"], rel=1e-4) and other["test"] == plain["test"]
    )


def test_every_method_of_a_process_is_compiled(monkeypatch):
    """Beyond torch's limit of versions of one function the rest would run plain, in silence."""
    monkeypatch.setattr(torch, "compile", functools.partial(torch.compile, backend="eager"))
    monkeypatch.setattr(torch._dynamo.config, "fail_on_recompile_limit_hit", True)
    for slug in ("bias", "vpt-deep", "vpt-shallow", "lora", "ssf"):
        fitted(replace(PLAIN, compile=True), slug, **settings_for(slug))


def test_the_record_of_a_compiled_network_names_the_code_that_ran(stores, monkeypatch):
    monkeypatch.setattr(torch, "compile", functools.partial(torch.compile, backend="aot_eager"))
    record = vp.tune(
        vp.build_method("vpt-deep", small_vit(), 3), tiny_task(), replace(PLAIN, compile=True)
    )
    units = store.read_code(stores[0] / "code" / f"{record.code}.json")
    assert {"vit_block", "Deep.extra"} <= {name.rpartition(":")[2].split(" ")[0] for name in units}
    assert record.settings["recipe"]["compile"] is True


def test_what_a_compiler_leaves_in_the_place_of_a_function_is_not_taken_for_a_changed_file():
    backbone = small_vit()
    side = clock.Side("vpt-deep", {"prompt_tokens": 4}, compiled=True)
    model, batch = side.build(backbone), clock.sample_batch(backbone, 4)
    with pytest.MonkeyPatch.context() as patch, watching() as seen:
        patch.setattr(torch, "compile", functools.partial(torch.compile, backend="aot_eager"))
        step = clock.training_step(side, model, *batch)
        step(), step()
    assert any(name.endswith("clock:training_step") for name in seen.units())


@pytest.mark.refused
def test_a_form_that_a_model_cannot_have_is_refused():
    with pytest.raises(
        BadInput, match="test_vit pools its class token; give a backbone that averages"
    ):
        fitted(replace(PLAIN, as_released="averaged prompts"), "vpt-shallow")
    model = vp.build_method("vpt-deep", small_vit("avg"), 3)
    with pytest.raises(BadInput, match="write form='concatenate'"):
        loop.fit_model(model, tiny_task(), replace(PLAIN, as_released="averaged prompts"))
    assert type(model.method) is type(vp.build_method("vpt-deep", small_vit(), 3).method)


def test_a_frame_starts_normal_and_key_value_prompts_within_their_bound():
    model, form = released_form("vp", "normal start")
    with form:
        model.reset()
        assert abs(model.method.delta.std() - 1) < 0.1 and model.method.delta.abs().max() > 2
    model, form = released_form("e2vpt", "keys and values by head", prompt_tokens=4)
    with form:
        model.reset()
        bound = math.sqrt(6 / (4 * 8))  # of four prompts on heads of width 8
        assert 0.8 * bound < model.method.key_values.abs().max() <= bound
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
        method.prepare(
            model.source, task.train[0].float(), task.train[1], torch.Generator().manual_seed(0)
        )
        torch.testing.assert_close(method.centroids.mean(1), torch.zeros(2), atol=1e-5, rtol=0)
        method.add_features(torch.randn(9, 16) + 5, torch.arange(9) % 3)
        means, before = method.sums / method.counts[:, None], method.centroids.clone()
        method.after_epoch()
        _, nearest = da_vpt.cosine_kmeans(
            F.layer_norm(means, (16,)), F.layer_norm(before, (16,)), 20
        )
        assert method.cluster.tolist() == nearest.tolist()


@pytest.mark.parametrize("first", [1, 10])
@pytest.mark.parametrize("more", ["", "normed class means, "])
def test_classes_keep_their_first_clusters_until_an_epoch(first, more, monkeypatch):
    calls, kmeans = [], da_vpt.cosine_kmeans
    monkeypatch.setattr(da_vpt, "cosine_kmeans", lambda *given: calls.append(1) or kmeans(*given))
    name = f"{more}clusters from epoch {first}"
    fitted(replace(PLAIN, epochs=12, as_released=name), "da-vpt", prompt_tokens=2)
    assert len(calls) == 1 + 12 - first


def test_prompts_enter_with_norm_1_or_in_guided_blocks_alone():
    model, x = with_form("da-vpt", "unit prompts", prompt_tokens=2, guided_from=2)
    prompts = [F.normalize(prompt, dim=-1) for prompt in model.method.prompts]
    for index, prompt in enumerate(prompts):
        torch.testing.assert_close(model.method.entering(index), prompt)
    model, x = with_form("da-vpt", "guided prompts alone", prompt_tokens=5, guided_tokens=2)
    out, last = model.source.stem(x), model.source.depth - 1
    for block in model.source.model.blocks[:last]:
        out = block(out)
    out = torch.cat([model.method.prompts[last].expand(len(x), -1, -1), out], 1)
    out = model.source.model.norm(model.source.model.blocks[last](out)[:, 2:]).mean(1)
    torch.testing.assert_close(model.features(model.below(x)), out)
    assert sum(p.numel() for p in model.method_parameters()) == 2 * model.source.width


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
        query = block.attn.qkv(block.norm1(torch.cat([entering[:, 0], method.prompts[last]])))[
            :, :16
        ]
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
    assert released.named("vp", "normal start, normal start") == [released.NormalStart]
    with pytest.raises(BadInput, match="no difference of bias can be asked for"):
        fitted(replace(PLAIN, as_released="normal start"), "bias")
