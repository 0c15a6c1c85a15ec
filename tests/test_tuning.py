"""Tuning: cached equals uncached, records are found, bad input is refused."""

from dataclasses import replace

import pytest
import torch
from conftest import carries, tiny_task
from safetensors.torch import save_file

import visprompt as vp
from visbook.studies.case import Facts, Run
from visbook.studies.lab import Lab, LabSettings
from visbook.studies.statistics import interval
from visbook.studies.sweeps import at_best_rates
from visprompt.errors import BadInput
from visprompt.measure.attention import attention_distance, attention_weights
from visprompt.measure.similarity import linear_cka
from visprompt.records import store
from visprompt.training.loop import fit, tune
from visprompt.training.recipe import Recipe, load_recipe

QUICK = Recipe(epochs=3, batch_size=8)


@pytest.mark.parametrize(
    ("slug", "settings"), [("linear-probe", {}), ("ap", {"block": 0}), ("ap", {"block": 3})]
)
def test_cached_training_is_uncached_training(vit, task, slug, settings):
    model = vp.build_method(slug, vit, 3, **settings)
    cached = fit(model, task, QUICK, seed=1)
    fast = [p.detach().clone() for p in [*model.head.parameters(), *model.method_parameters()]]
    plain = fit(model, task, QUICK, seed=1, cache=False)
    slow = [*model.head.parameters(), *model.method_parameters()]
    assert cached["cached_below"] is not None and plain["cached_below"] is None
    assert torch.allclose(torch.tensor(cached["loss"]), torch.tensor(plain["loss"]), atol=1e-4)
    assert all(torch.allclose(a, b, atol=1e-3) for a, b in zip(fast, slow, strict=True))


def test_runs_share_activations_and_the_oldest_go_first(vit, task, monkeypatch):
    from visprompt.training import activations

    monkeypatch.setattr(activations, "SHARED", activations.Shared())
    calls = []
    below = vp.build_method("ap", vit, 3, block=2).__class__.below
    monkeypatch.setattr(
        "visprompt.methods.base.TunedModel.below",
        lambda self, x: calls.append(len(x)) or below(self, x),
    )
    first = fit(vp.build_method("ap", vit, 3, block=2), task, QUICK, seed=0)
    seen = len(calls)
    again = fit(vp.build_method("ap", vit, 3, block=2), task, QUICK, seed=0)
    # train, val and test, once
    assert seen == 3 and len(calls) == seen and first["loss"] == again["loss"]
    other = tiny_task(seed=1)
    fit(vp.build_method("ap", vit, 3, block=2), other, QUICK, seed=0)
    assert len(calls) == 2 * seen
    shared = activations.Shared()
    parts = [
        shared.get((i,), lambda i=i: torch.full((1000,), float(i)), gib=8500 / 2**30)
        for i in range(3)
    ]
    assert list(shared.kept) == [(1,), (2,)] and [float(part[0]) for part in parts] == [0, 1, 2]


def test_augmented_training_is_uncached_and_repeats(vit, task):
    recipe = replace(QUICK, augmentation="crop and flip")
    model = vp.build_method("ap", vit, 3, block=2)
    first, second = (fit(model, task, recipe, seed=0) for _ in range(2))
    assert first["cached_below"] is None and first["loss"] == second["loss"]
    assert first["loss"] != fit(model, task, QUICK, seed=0)["loss"]
    with pytest.raises(BadInput, match="augmentation"):
        replace(QUICK, augmentation="flip")


def test_one_rate_for_head_and_method_where_the_head_has_none(vit, task):
    model = vp.build_method("ap", vit, 3, block=2)
    one = fit(model, task, replace(QUICK, head_rate=None, learning_rate=0.005), seed=0)
    same = fit(model, task, replace(QUICK, head_rate=0.005, learning_rate=0.005), seed=0)
    assert one["loss"] == same["loss"]


def test_watching_sees_every_epoch(vit, task):
    seen = []
    fit(vp.build_method("vpt-deep", vit, 3), task, QUICK, seed=0, watch=seen.append)
    assert seen == [0, 1, 2, 3]


def test_prompts_can_start_on_another_task(vit, task, stores):
    model, other = (
        vp.build_method("spt-deep", vit, 3, prompt_tokens=4, frozen=True),
        tiny_task(seed=5),
    )
    tune(model, task, QUICK)
    own = [prompt.detach().clone() for prompt in model.method.prompts]
    record = tune(model, task, QUICK, prepared_on=other)
    assert any(not torch.equal(a, b) for a, b in zip(own, model.method.prompts, strict=True))
    assert (
        record.settings["prepared_on"] == "tiny"
        and "prepared_on" not in tune(model, task, QUICK).settings
    )


def test_activations_above_the_limit_are_not_cached(vit, task):
    model = vp.build_method("ap", vit, 3, block=1)
    assert fit(model, task, replace(QUICK, cache_gib=1e-9), seed=0)["cached_below"] is None


@pytest.mark.parametrize("slug", vp.METHODS)
def test_every_method_learns_and_leaves_the_backbone(vit, resnet, slug, stores):
    # BatchNorm wants more
    for backbone, task in ((vit, tiny_task()), (resnet, tiny_task(32, per_split=(96, 24, 24)))):
        if not carries(slug, backbone.family):
            continue
        before = {key: value.clone() for key, value in backbone.state_dict().items()}
        model = vp.build_method(slug, backbone, 3)
        record = tune(model, task, replace(QUICK, epochs=12, learning_rate=0.003))
        assert record.values["loss"][-1] < record.values["loss"][0]
        assert record.values["test"] > 40  # chance is a third
        assert all(torch.equal(before[key], value) for key, value in backbone.state_dict().items())


def test_a_seed_repeats_and_seeds_differ(vit, task):
    model = vp.build_method("ap", vit, 3, block=1)
    assert fit(model, task, QUICK, seed=0)["loss"] == fit(model, task, QUICK, seed=0)["loss"]
    assert fit(model, task, QUICK, seed=0)["loss"] != fit(model, task, QUICK, seed=1)["loss"]


def test_the_record_names_what_decides_it(vit, task, stores):
    record = tune(vp.build_method("ap", vit, 3, block=1), task, QUICK)
    assert record.settings["normalisation"] == {"mean": [0.5] * 3, "std": [0.5] * 3}
    assert record.settings["recipe"]["selection"] == "last epoch"
    units = store.read_code(stores[0] / "code" / f"{record.code}.json")
    modules = {
        "chance",
        "data.tasks",
        "models.backbones",
        "models.blocks",
        "models.remembered",
        "training.activations",
        "training.loop",
        "training.standardising",
        "training.steps",
        "training.recipe",
    }
    modules |= {"methods.ap", "methods.base", "methods.parameters"}
    assert {place.split(":")[0] for place in units} == modules
    again = tune(vp.build_method("ap", vit, 3, block=1), task, QUICK)
    assert again == record
    assert tune(vp.build_method("ap", vit, 3, block=1), tiny_task(seed=5), QUICK).id != record.id


def by_torch(tensor):
    tensor[...] = 0


def by_data(tensor):
    tensor.data.zero_()


def by_numpy(tensor):
    tensor.numpy()[...] = 0


@pytest.mark.parametrize("change", [by_torch, by_data, by_numpy])
@pytest.mark.parametrize(("split", "part"), [("train", 0), ("train", 1), ("test", 0), ("test", 1)])
def test_a_task_that_was_changed_in_place_is_another_one(vit, task, stores, change, split, part):
    """Neither torch's counter of changes nor an address tells of what is done through `.data` or
    NumPy."""
    model, before = vp.build_method("linear-probe", vit, 3), task.fingerprint
    first, fitted = vp.tune(model, task, QUICK), vp.fit(model, task, QUICK)
    assert first.data == before and vp.tune(model, task, QUICK) == first
    change(getattr(task, split)[part])
    true = fit(model, tiny_task_like(task), QUICK, 0)
    for found in (vp.tune(model, task, QUICK).values, vp.fit(model, task, QUICK)):
        assert found["loss"] == true["loss"] and found["test"] == true["test"] != fitted["test"]


def tiny_task_like(task):
    return replace(
        task,
        **{
            name: tuple(part.clone() for part in getattr(task, name))
            for name in ("train", "val", "test")
        },
    )


def test_the_task_that_a_method_is_prepared_on_is_looked_at_anew_too(vit, task, stores):
    model, other = (
        vp.build_method("spt-deep", vit, 3, prompt_tokens=4, frozen=True),
        tiny_task(seed=5),
    )
    first = vp.tune(model, task, QUICK, prepared_on=other)
    other.train[0][...] = 0
    assert vp.tune(model, task, QUICK, prepared_on=other).data != first.data


def test_search_looks_at_validation_only(stores, monkeypatch):
    found = []
    for flipped in (False, True):
        lab = Lab(LabSettings(changes={"epochs": 1}))
        plain = lab.task("position", 24, 80)
        lab.tasks["position", 24, 80] = (
            replace(plain, test=(plain.test[0], plain.test[1].flip(0))) if flipped else plain
        )
        monkeypatch.setattr(
            lab,
            "facts",
            lambda name, size, train, lab=lab: Facts(
                16,
                lab.task(name, size, train).fingerprint,
                {"task": name, "train_size": 80, "resize": "none", "image_size": 24},
            ),
        )
        runs = [
            Run("vit_nano_patch4_24", "position", slug, 0, 80) for slug in ("ap", "linear-probe")
        ]
        found.append([run.rate for run in at_best_rates(runs, lab, compute=True)])
    assert found[0] == found[1] and all(found[0])


def test_a_loss_that_is_no_number_is_an_error(vit, task):
    with pytest.raises(FloatingPointError, match="lower learning_rate"):
        fit(
            vp.build_method("ap", vit, 3),
            task,
            Recipe(epochs=2, learning_rate=1e30, head_rate=1e30),
            seed=0,
        )


@pytest.mark.refused
@pytest.mark.parametrize(
    ("words", "told"),
    [
        ({"lr": 0.1}, "Write learning_rate"),
        ({"learningrate": 0.1}, "Did you mean 'learning_rate'"),
        ({"wd": 0}, "Write weight_decay"),
        ({"optimizer": "adamw"}, "Write 'adam'"),
        ({"optimizer": "adamm"}, "Did you mean 'adam'"),
        ({"epochs": "3"}, "must be int"),
        ({"epochs": 2.5}, "must be int"),
        ({"epochs": True}, "must be int"),
        ({"learning_rate": "0.1"}, "must be float"),
        ({"learning_rate": float("nan")}, "must be float"),
        ({"learning_rate": -1.0}, "above 0"),
        ({"head_rate": 0}, "above 0"),
        ({"batch_size": 0}, "above 0"),
        ({"warmup": 1.0}, "share of the steps"),
        ({"weight_decay": -0.1}, "0 or more"),
        ({"standardise": "no"}, "must be bool"),
        ({"selection": "best"}, "unknown selection"),
        ({"precision": "fp16"}, "bf16"),
        ({"cache_gib": -1.0}, "0 or more"),
        ({"augmentation": None}, "must be str"),
    ],
)
def test_a_wrong_recipe_is_one_line_that_says_what_to_write(words, told):
    with pytest.raises(vp.BadInput, match=told) as found:
        Recipe(**words)
    assert "\n" not in str(found.value)


@pytest.mark.refused
@pytest.mark.parametrize(
    "wrong",
    [
        {"model": None},
        {"task": "position"},
        {"recipe": {"epochs": 1}},
        {"seed": "0"},
        {"seed": True},
    ],
)
def test_tune_refuses_what_is_no_model_task_recipe_or_seed(wrong, vit, task, stores):
    given = {
        "model": vp.build_method("ap", vit, 3),
        "task": task,
        "recipe": QUICK,
        "seed": 0,
        **wrong,
    }
    with pytest.raises(vp.BadInput, match=f"tune's {next(iter(wrong))} must be"):
        tune(**given)


@pytest.mark.refused
@pytest.mark.parametrize("door", [vp.fit, vp.tune])
@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"model": None}, "'s model must be TunedModel, not None"),
        ({"model": "ap"}, "'s model must be TunedModel, not 'ap'"),
        ({"model": vp.BadInput}, "'s model must be TunedModel"),
        ({"task": None}, "'s task must be Task, not None"),
        ({"task": "position"}, "'s task must be Task, not 'position'"),
        ({"recipe": None}, "'s recipe must be Recipe, not None"),
        ({"recipe": {"epochs": 1}}, "'s recipe must be Recipe, not {'epochs': 1}"),
        ({"recipe": "quick"}, "'s recipe must be Recipe, not 'quick'"),
        ({"seed": None}, "'s seed must be int, not None"),
        ({"seed": "0"}, "'s seed must be int, not '0'"),
        ({"seed": 1.0}, "'s seed must be int, not 1.0"),
        ({"seed": True}, "'s seed must be int, not True"),
        ({"prepared_on": "digits"}, "prepared_on must be .*Task | None, not 'digits'"),
        ({"prepared_on": 3}, "prepared_on must be .*Task | None, not 3"),
        ({"epochs": 3}, "epochs"),
        ({"learning_rate": 0.1}, "learning_rate"),
        ({"task": tiny_task(20)}, "takes images of 16x16 pixels, not 20x20"),
        ({"task": tiny_task(24)}, "takes images of 16x16 pixels, not 24x24"),
    ],
)
def test_what_cannot_be_fitted_is_one_line(door, wrong, told, vit, task, stores):
    with pytest.raises(vp.BadInput, match=told) as found:
        door(**{"model": vp.build_method("ap", vit, 3), "task": task, "recipe": QUICK, **wrong})
    assert "\n" not in str(found.value)


@pytest.mark.refused
@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda model, task: vp.fit(), "fit: missing a required argument: 'model'"),
        (lambda model, task: vp.fit(model), "fit: missing a required argument: 'task'"),
        (
            lambda model, task: vp.fit(vp.build_method("ap", model.source, 2), task),
            "build the method with num_classes=3",
        ),
        (
            lambda model, task: vp.fit(model, task, watch=3),
            r"watch must be .*Callable \| None, not 3",
        ),
        (lambda model, task: vp.fit(model, task, cache="no"), "cache must be bool, not 'no'"),
        (lambda model, task: vp.fit(model, task, cach=True), "Did you mean 'cache'"),
        (lambda model, task: vp.tune(model), "tune: missing a required argument: 'task'"),
        (lambda model, task: vp.tune(model, task), "tune: missing a required argument: 'recipe'"),
        (
            lambda model, task: vp.tune(model, task, QUICK, run="no"),
            "tune's run must be bool, not 'no'",
        ),
        (
            lambda model, task: vp.tune(model, task, QUICK, about="quick"),
            r"tune's about must be dict \| None, not 'quick'",
        ),
        (lambda model, task: vp.count_flops(), "count_flops: missing a required argument: 'model'"),
        (
            lambda model, task: vp.count_flops(model, training="yes"),
            "count_flops's training must be bool, not 'yes'",
        ),
        (
            lambda model, task: vp.count_flops(model, batch_size=0),
            "batch_size must be a whole number of 1 to 65,536, not 0",
        ),
        (
            lambda model, task: vp.count_flops(model, batch_size=-1),
            "batch_size must be a whole number .*not -1",
        ),
        (
            lambda model, task: vp.count_flops(model, batch_size=2.5),
            "batch_size must be a whole number .*not 2.5",
        ),
        (
            lambda model, task: vp.count_flops(model, batch_size="2"),
            "batch_size must be a whole number .*not '2'",
        ),
        (
            lambda model, task: vp.count_flops(model, batch_size=None),
            "batch_size must be a whole number .*not None",
        ),
        (lambda model, task: vp.count_flops(task), "count_flops's model must be TunedModel, not "),
        (
            lambda model, task: vp.count_parameters(model, 3),
            "count_parameters: too many positional arguments",
        ),
        (
            lambda model, task: vp.count_parameters(model.source),
            "count_parameters's model must be TunedModel, not ",
        ),
    ],
)
def test_what_the_doors_cannot_take_is_one_line(call, told, vit, task, stores):
    with pytest.raises(vp.BadInput, match=told) as found:
        call(vp.build_method("ap", vit, 3), task)
    assert "\n" not in str(found.value)


def test_fit_without_a_recipe_takes_the_default_one(vit, task):
    model = vp.build_method("linear-probe", vit, 3)
    assert len(vp.fit(model, task)["loss"]) == Recipe().epochs and model.task["class_names"] == [
        "a",
        "b",
        "c",
    ]


def test_a_recipe_without_a_rate_takes_the_methods_own(stores):
    """One rate for all methods left full fine-tuning at chance."""
    backbone, task = (
        vp.load_backbone("vit_micro_patch4_24", "pretrained"),
        vp.load_task("digits", train_size=400),
    )
    record = tune(vp.build_method("full-finetune", backbone, task.classes), task, Recipe(epochs=4))
    # chance is 10
    assert record.settings["recipe"]["learning_rate"] == 0.0003 and record.values["test"] > 50
    probe = tune(vp.build_method("linear-probe", backbone, task.classes), task, Recipe(epochs=1))
    assert (
        probe.settings["recipe"]["learning_rate"] is None
        and probe.settings["recipe"]["head_rate"] == 0.02
    )


def test_the_same_batches_for_every_method_of_a_seed(vit, task, monkeypatch):
    """What a method draws at its start or before training does not shift the order of the
    batches."""
    seen = {}
    for slug in ("linear-probe", "spt-deep", "da-vpt"):
        model, orders = vp.build_method(slug, vit, 3), []
        monkeypatch.setattr(
            model,
            "training_loss",
            lambda features, labels, orders=orders, plain=model.training_loss: (
                orders.append(labels.tolist()) or plain(features, labels)
            ),
        )
        fit(model, task, replace(QUICK, epochs=2), seed=3)
        seen[slug] = orders
    assert (
        seen["linear-probe"] == seen["spt-deep"] == seen["da-vpt"]
        and len(seen["da-vpt"]) == len(seen["spt-deep"]) > 2
    )


def test_bf16_is_near_float32_and_keeps_float32_weights(vit, task):
    model = vp.build_method("vpt-deep", vit, 3)
    losses = [
        fit(model, task, replace(QUICK, precision=kind), 0)["loss"][0]
        for kind in ("float32", "bf16")
    ]
    assert losses[0] != losses[1] and losses[1] == pytest.approx(losses[0], abs=0.05)
    assert {p.dtype for p in model.parameters()} == {torch.float32}


@pytest.mark.parametrize("slug", vp.METHODS)
def test_bf16_casts_frozen_weights_once_and_learns_the_same(slug, request, monkeypatch):
    """Between epochs, and after an error, weights are as they were."""
    # a Swin whose own weights are trained in bf16 does not repeat a run on a processor
    for family in ("vit", "resnet", *["swin"] * (slug == "vpt-deep")):
        backbone = request.getfixturevalue(family)
        if not carries(slug, backbone.family):
            continue
        task = tiny_task(backbone.image_size, per_split=(96, 24, 24))
        kinds, before = set(), backbone.fingerprint

        def seen(epoch, model=None):
            kinds.update(p.dtype for p in (model or backbone).parameters())

        def fitted():
            model = vp.build_method(slug, backbone, task.classes)
            inner = model.features
            model.features = lambda x: seen(0, model) or inner(x)  # in a step
            recipe = vp.Recipe(epochs=2, batch_size=32, precision="bf16", learning_rate=0.01)
            found = vp.fit(model, task, recipe, 0, watch=seen)
            return {name: found[name] for name in ("loss", "right", "val_by_epoch")}

        once = fitted()
        frozen = torch.bfloat16 in kinds
        assert backbone.fingerprint == before
        kinds.clear()
        monkeypatch.setattr("visprompt.training.loop.cast_once", lambda train: train)
        assert fitted() == once and kinds == {torch.float32}
        monkeypatch.undo()
        assert frozen is (slug not in ("full-finetune", "linear-probe"))


def test_bad_recipes_and_tasks(vit, task):
    with pytest.raises(vp.BadInput, match="epochs must be above 0"):
        Recipe(epochs=0)
    with pytest.raises(vp.BadInput, match="unknown optimizer"):
        Recipe(optimizer="adamm")
    with pytest.raises(vp.BadInput, match="unknown recipe"):
        load_recipe("quik", "ap", True)
    with pytest.raises(vp.BadInput, match="build the method with num_classes=3"):
        tune(vp.build_method("ap", vit, 2), task, QUICK)
    with pytest.raises(vp.BadInput, match="takes images of 16x16 pixels, not 20x20"):
        fit(vp.build_method("ap", vit, 3), tiny_task(20), QUICK, seed=0)


def test_weights_files(tmp_path):
    backbone = vp.load_backbone("vit_tiny_patch16_224")
    with pytest.raises(vp.BadInput, match="does not exist"):
        vp.load_backbone("vit_tiny_patch16_224", tmp_path / "missing.safetensors")
    (tmp_path / "broken.safetensors").write_bytes(b"no weights")
    with pytest.raises(vp.BadInput, match="cannot be read"):
        vp.load_backbone("vit_tiny_patch16_224", tmp_path / "broken.safetensors")
    state = {key: value + 1 for key, value in backbone.model.state_dict().items()}
    save_file(state, tmp_path / "good.safetensors")
    loaded = vp.load_backbone("vit_tiny_patch16_224", tmp_path / "good.safetensors")
    assert torch.equal(loaded.model.cls_token, state["cls_token"])
    assert loaded.fingerprint != backbone.fingerprint
    with pytest.raises(vp.BadInput, match="of another architecture than vit_small.*differ"):
        vp.load_backbone("vit_small_patch16_224", tmp_path / "good.safetensors")
    with pytest.raises(vp.BadInput, match="unknown backbone"):
        vp.load_backbone("vit_tinny_patch16_224")
    with pytest.raises(vp.BadInput, match="no backbone the block loop knows"):
        vp.load_backbone("convnext_tiny", device="meta")


def test_pretrained_weights_that_cannot_be_fetched(monkeypatch):
    import timm

    create = timm.create_model

    def offline(name, pretrained=False, **kwargs):
        if pretrained:
            raise ConnectionError("no network")
        return create(name, pretrained=False, **kwargs)

    monkeypatch.setattr(timm, "create_model", offline)
    with pytest.raises(vp.BadInput, match="cannot be fetched.*give a file"):
        vp.load_backbone("vit_tiny_patch16_224", "pretrained")


def test_attention_weights_reproduce_the_block(vit):
    """Softmax weights times values, projected, is what timm's attention returns."""
    x = torch.randn(2, 17, 16, generator=torch.Generator().manual_seed(0))
    weights = attention_weights(vit, x, 1)
    attn, normed = vit.blocks[1].attn, vit.blocks[1].norm1(x)
    values = attn.qkv(normed).reshape(2, 17, 3, 2, 8)[:, :, 2].transpose(1, 2)
    assert torch.allclose(
        attn.proj((weights @ values).transpose(1, 2).reshape(2, 17, 16)), attn(normed), atol=1e-5
    )


def test_attention_distance_of_uniform_and_local_attention(vit, monkeypatch):
    from visprompt.measure import attention

    images = torch.zeros(1, 3, 16, 16)
    for weights, expected in (
        (torch.full((1, 2, 17, 17), 1 / 17), None),
        (torch.eye(17).expand(1, 2, 17, 17) + 1e-9, 0.0),
    ):
        monkeypatch.setattr(attention, "attention_weights", lambda *args, weights=weights: weights)
        found = attention_distance(vit, images)
        if expected is None:  # mean distance over all pairs of the 4 x 4 grid, 4 pixels apart
            grid = torch.cartesian_prod(torch.arange(4.0), torch.arange(4.0)) * 4
            expected = torch.cdist(grid, grid).mean().item()
        assert found.shape == (4, 2)
        assert torch.allclose(found, torch.tensor(expected), atol=1e-4)


def test_cka():
    x = torch.randn(50, 7, generator=torch.Generator().manual_seed(0))
    turn = torch.linalg.qr(torch.randn(7, 7, generator=torch.Generator().manual_seed(1)))[0]
    # no rotation, scale or shift matters
    assert linear_cka(x, x @ turn * 3 + 1) == pytest.approx(1)
    y = torch.randn(50, 5, generator=torch.Generator().manual_seed(2))
    centred_x, centred_y = (x - x.mean(0)).double(), (y - y.mean(0)).double()
    cross = (centred_y.T @ centred_x).norm() ** 2
    plain = cross / ((centred_x.T @ centred_x).norm() * (centred_y.T @ centred_y).norm())
    assert linear_cka(x, y) == pytest.approx(plain.item())


def test_interval():
    mean, low, high = interval([1.0, 2.0, 3.0])
    # t of 2 degrees of freedom
    assert mean == 2 and high - mean == pytest.approx(4.302653 / 3**0.5)
    assert interval([1.0, 1.0]) == (1.0, float("-inf"), float("inf"))
    with pytest.raises(vp.BadInput, match="left out by the parameters"):
        interval([])
