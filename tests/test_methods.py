"""Methods against their equations, and backbones against timm."""

import copy
import importlib
import itertools
import re
import shutil
import typing
from dataclasses import fields
from pathlib import Path

import pytest
import torch
from conftest import carries, small_vit
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch import nn
from torch.nn import functional as F

import visprompt as vp
from visprompt import checks, methods, paths
from visprompt.manifests import load_yaml
from visprompt.measure.cost import count_flops, training_memory
from visprompt.methods import METHODS
from visprompt.methods.parameters import count_parameters
from visprompt.models.backbones import FAMILIES, to_meta


def images_for(backbone, batch=2, seed=0):
    size = backbone.image_size
    return torch.randn(batch, 3, size, size, generator=torch.Generator().manual_seed(seed))


def randomise(model, seed=0):
    """Give every trained parameter a value at which a mistake would show."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in [*model.head.parameters(), *model.method.parameters()]:
            parameter.add_(
                0.3
                * torch.randn(parameter.shape, generator=generator, dtype=torch.float32).to(
                    parameter
                )
            )
    return model


def test_a_file_of_a_method_has_both_classes_and_begins_with_its_name():
    for path in sorted(
        {*Path(methods.__file__).parent.glob("*.py")} - {Path(methods.base.__file__)}
    ):
        text = path.read_text(encoding="utf-8")
        found = {"Settings", "Method"} & set(re.findall(r"(?m)^class (\w+)", text))
        assert len(found) != 1, (
            f"{path.name} has a class {found}; a method needs a class Settings and a class Method"
        )
        assert not found or re.match(r'"""[^\n:]+: ', text), (
            f"{path.name}: begin its docstring with the name and a colon"
        )


@pytest.mark.parametrize("name", ["vit_tiny_patch16_224", "resnet18"])
def test_block_loop_is_timm(name):
    backbone = vp.load_backbone(name)
    images = images_for(backbone, 1)
    with torch.no_grad():
        expected = backbone.model.forward_head(
            backbone.model.forward_features(images), pre_logits=True
        )
        assert torch.allclose(backbone(images), expected, atol=1e-5)


@settings(max_examples=25, deadline=None)
@given(
    block=st.integers(0, 3),
    kind=st.sampled_from(["add", "product", "concatenate"]),
    batch=st.integers(1, 3),
    tokens=st.integers(1, 7),
    pool=st.sampled_from(["token", "avg"]),
)
def test_ap_is_its_definition_on_a_vit(block, kind, batch, tokens, pool):
    """AP Sec. 3 and Table A3 written out: run the blocks by hand and change the input of one. Value
    and gradient."""
    backbone = small_vit(pool).double()
    model = randomise(
        vp.build_method("ap", backbone, 5, block=block, kind=kind, prompt_tokens=tokens).double()
    )
    images = images_for(backbone, batch).double()
    fast = model(images)
    fast.square().sum().backward()
    delta = model.method.prompts[0]
    gradient = delta.grad.clone()
    delta.grad = None

    timm, prefix = backbone.model, backbone.model.num_prefix_tokens
    z = timm._pos_embed(timm.patch_embed(images))
    for index, module in enumerate(timm.blocks):
        if index == block and kind == "add":
            z = z + delta
        elif index == block and kind == "product":
            z = z * delta
        elif index == block:
            z = torch.cat([z[:, :prefix], delta.expand(batch, -1, -1), z[:, prefix:]], 1)
        z = module(z)
    if kind == "concatenate":
        z = torch.cat([z[:, :prefix], z[:, prefix + tokens :]], 1)
    plain = model.head(timm.forward_head(timm.norm(z), pre_logits=True))
    plain.square().sum().backward()
    assert torch.allclose(fast, plain, atol=1e-10)
    assert torch.allclose(gradient, delta.grad, atol=1e-10)
    assert gradient.abs().sum() > 0


@pytest.mark.parametrize("block", [0, 1, 3])
def test_ap_on_a_resnet(resnet, block):
    model = randomise(vp.build_method("ap", resnet, 5, block=block))
    images, timm = images_for(resnet), resnet.model
    z = timm.maxpool(timm.act1(timm.bn1(timm.conv1(images))))
    for index, module in enumerate([*timm.layer1, *timm.layer2, *timm.layer3, *timm.layer4]):
        z = module(z + model.method.prompts[0] if index == block else z)
    assert torch.allclose(model(images), model.head(timm.global_pool(z)), atol=1e-5)


def test_ap_on_several_blocks_is_ap_after_ap(vit):
    several = randomise(vp.build_method("ap", vit, 3, block=(1, 3)))
    images = images_for(vit)
    x = vit.run(vit.stem(images), stop=1) + several.method.prompts[0]
    x = vit.run(x, start=1, stop=3) + several.method.prompts[1]
    assert torch.allclose(several(images), several.head(vit.pool(vit.run(x, start=3))), atol=1e-6)


@pytest.mark.parametrize("padding", [None, 1, 5])
def test_vp_adds_delta_inside_its_frame(vit, padding):
    model = randomise(vp.build_method("vp", vit, 3, padding=padding))
    images = torch.zeros(1, 3, 16, 16)
    changed = model.method.change_images(images)[0]
    inside = torch.ones(16, 16, dtype=torch.bool)
    if padding is not None:
        inside[padding:-padding, padding:-padding] = False
    assert torch.equal(changed[:, inside].flatten().sort().values, model.method.delta.sort().values)
    assert (changed[:, ~inside] == 0).all()
    assert torch.allclose(model(images + 1), model.head(vit(images + 1 + changed)), atol=1e-6)


def test_vp_resize_puts_the_image_into_the_hole(vit):
    model = vp.build_method("vp", vit, 3, template="resize", padding=4)
    images = images_for(vit)
    changed = model.method.change_images(images)
    small = F.interpolate(images, size=8, mode="bilinear", antialias=True, align_corners=False)
    assert torch.allclose(changed[:, :, 4:12, 4:12], small)
    assert (changed[:, :, :4] == 0).all()


@pytest.mark.parametrize(
    ("slug", "family"), [(s, f) for s in METHODS for f in FAMILIES if carries(s, f)]
)
def test_only_the_method_and_the_head_are_trained(slug, family, request):
    backbone = request.getfixturevalue(family)
    before = copy.deepcopy(backbone.state_dict())
    model = vp.build_method(
        slug, backbone, 3, **({"ar": "none"} if (slug, family) == ("ivpt", "swin") else {})
    )
    trained = [*model.head.parameters(), *model.method_parameters()]
    model.method.train()
    model.training_loss(
        model.features(model.below(images_for(backbone))), torch.tensor([0, 1])
    ).backward()
    assert all(parameter.grad is not None for parameter in trained)
    everything = {id(p) for p in model.parameters() if p.grad is not None}
    assert everything == {id(p) for p in trained}
    with torch.no_grad():
        for parameter in trained:
            parameter.add_(1)
    # shared, untouched
    assert all(torch.equal(before[key], value) for key, value in backbone.state_dict().items())


PROBES = ["full-finetune", "norm-tune", "vp", "ap", "bias", "lora", "adapter", "adaptformer", "ssf"]


@pytest.mark.parametrize("slug", PROBES)
def test_methods_without_prompt_tokens_start_at_the_linear_probe(vit, slug):
    images = images_for(vit)
    start = vp.build_method("linear-probe", vit, 3)(images)
    assert torch.allclose(vp.build_method(slug, vit, 3)(images), start, atol=1e-6)


def test_norm_tune_trains_all_normalisation_layers(vit, resnet):
    layers = sum(isinstance(m, nn.LayerNorm) for m in vit.modules())
    assert count_parameters(vp.build_method("norm-tune", vit, 3))["method"] == layers * 2 * 16
    widths = [m.num_features for m in resnet.modules() if isinstance(m, nn.BatchNorm2d)]
    assert count_parameters(vp.build_method("norm-tune", resnet, 3))["method"] == 2 * sum(widths)


# Counted by hand from the architectures: ViT-L/16 has 24 blocks with 2 LayerNorms and one after;
# ResNet-101's last stage sees 1024 x 14 x 14 at its first block and 2048 x 7 x 7 at the others.
EXACT = {
    ("vit_large_patch16_224", "linear-probe"): 1024 * 10 + 10,
    ("vit_large_patch16_224", "norm-tune"): 1024 * 10 + 10 + 49 * 2 * 1024,
    ("vit_large_patch16_224", "ap"): 1024 * 10 + 10 + 197 * 1024,
    ("vit_large_patch16_224", "vp"): 1024 * 10 + 10 + 3 * 224 * 224,
    ("resnet101", "linear-probe"): 2048 * 10 + 10,
    ("resnet101", "norm-tune"): 2048 * 10 + 10 + 105_344,
    ("resnet101", "ap"): 2048 * 10 + 10 + 1024 * 14 * 14,
    ("vit_large_patch16_224", "full-finetune"): 303_301_632 + 1024 * 10 + 10,
}


@pytest.mark.parametrize(("name", "slug"), EXACT)
def test_parameters_at_the_papers_architectures(name, slug):
    model = vp.build_method(slug, vp.load_backbone(name, device="meta"), 10)
    assert count_parameters(model)["total"] == EXACT[name, slug]


def test_flops_of_a_vit_by_its_formula():
    """Per block 12 N D^2 + 2 N^2 D multiply-adds, the patch embedding and the head; ViT-B/16 is
    17.6 GMACs."""
    backbone = vp.load_backbone("vit_base_patch16_224", device="meta")
    n, d = 197, 768
    macs = 12 * (12 * n * d * d + 2 * n * n * d) + 196 * (16 * 16 * 3) * d + d * 10
    trimmed = count_flops(vp.build_method("linear-probe", backbone, 10))["macs"]
    backbone.trims = False
    counted = count_flops(vp.build_method("linear-probe", backbone, 10))
    assert counted["macs"] == macs
    assert counted["flops"] == 2 * macs
    # the last block computes one query, one output projection and one MLP
    assert macs - trimmed == 196 * (9 * d * d + 2 * n * d)


def test_training_flops_fall_with_the_block(vit):
    flops = [
        count_flops(vp.build_method("ap", vit, 3, block=b), training=True)["flops"]
        for b in range(4)
    ]
    forward = count_flops(vp.build_method("ap", vit, 3))["flops"]
    assert flops == sorted(flops, reverse=True)
    assert forward < flops[-1] < flops[0] < 3 * forward


def test_memory_counts_saved_tensors_once():
    """A linear layer keeps its input; the count on shapes equals the bytes by hand."""
    backbone = vp.load_backbone("resnet18", device="meta")
    probe = training_memory(vp.build_method("linear-probe", backbone, 10), 4)
    head = 512 * 10 + 10
    assert probe["gradients"] == 4 * head and probe["optimizer"] == 8 * head
    # standardised features (4, 512), log-probabilities (4, 10), labels (4), and the loss's total
    # weight
    assert 4 * (4 * 512 + 4 * 10) <= probe["activations"] <= 4 * (2 * 4 * 512 + 8 * 10) + 64
    full = training_memory(vp.build_method("full-finetune", backbone, 10), 4)
    double = training_memory(vp.build_method("full-finetune", backbone, 10), 8)
    assert 1.9 < double["activations"] / full["activations"] < 2.01


def test_meta_copy_shares_nothing(vit):
    meta = to_meta(vit)
    assert all(p.is_meta for p in meta.parameters())
    assert not any(p.is_meta for p in vit.parameters())


BAD = [
    (dict(slug="apx"), "Did you mean 'ap'"),
    (dict(slug="ap", block=4), "blocks 0 to 3"),
    (dict(slug="ap", block=-1), "blocks 0 to 3"),
    (dict(slug="ap", block=()), "blocks 0 to 3"),
    (dict(slug="ap", kind="added"), "Did you mean 'add'"),
    (dict(slug="ap", blok=1), "Did you mean 'block'"),
    (dict(slug="linear-probe", block=1), "takes no settings"),
    (dict(slug="vp", padding=8), "1 to 7"),
    (dict(slug="vp", template="resize"), "needs padding"),
    (dict(slug="ap", num_classes=1), "2 or more"),
    (dict(slug="ap", num_classes="10"), "num_classes must be int, not '10'"),
    (dict(slug="ap", num_classes=True), "num_classes must be int"),
    (dict(slug="ap", num_classes=2.5), "num_classes must be int"),
    (dict(slug="ap", num_classes=None), "num_classes must be int"),
    (dict(slug="ap", num_classes=torch.zeros(20, 20)), "num_classes must be int"),
    (
        dict(slug="ap", block="3"),
        "setting block of ap must be a block's number, a list of different ones or None, not '3'",
    ),
    (dict(slug="ap", block=True), "setting block of ap must be a block's number"),
    (dict(slug="ap", block=1.0), "setting block of ap must be a block's number"),
    (dict(slug="ap", block=[1, "2"]), "setting block of ap must be a block's number"),
    (dict(slug="ap", block=[1, 1]), r"setting block of ap must be .*, not \(1, 1\)"),
    (
        dict(slug="vpt-deep", block=[3, 0, 3]),
        r"setting block of vpt-deep must be .*, not \(3, 0, 3\)",
    ),
    (dict(slug="ap", prompt_tokens=0), "prompt_tokens of ap must be a whole number"),
    (
        dict(slug="ap", kind="concatenate", prompt_tokens=-1),
        "prompt_tokens of ap must be a whole number",
    ),
    (
        dict(slug="lora", targets=["query", "query"]),
        r"targets of lora must be a list of different words, not \('query', 'query'\)",
    ),
    (dict(slug="lora", alpha=0), "alpha of lora must be a number from 1e-06"),
    (dict(slug="lora", alpha=-1), "alpha of lora must be a number from 1e-06"),
    (
        dict(slug="adapter", places=["mlp", "mlp"]),
        "places of adapter must be a list of different words",
    ),
    (
        dict(slug="bias", categories=["key", "value", "key"]),
        "categories of bias must be a list of different words",
    ),
    (
        dict(slug="da-vpt-plus", biases=["key", "key"]),
        "biases of da-vpt-plus must be a list of different words",
    ),
    (
        dict(slug="da-vpt", guided_tokens=0),
        "guided_tokens of da-vpt must be a whole number of 1 to 65,536 or None, not 0",
    ),
    (
        dict(slug="da-vpt-plus", guided_tokens=0),
        "guided_tokens of da-vpt-plus must be a whole number",
    ),
    (
        dict(slug="da-vpt", kmeans_iterations=-1),
        "kmeans_iterations of da-vpt must be a whole number from 0 on, not -1",
    ),
    (
        dict(slug="spt-deep", iterations=-1),
        "iterations of spt-deep must be a whole number from 0 on, not -1",
    ),
    (
        dict(slug="spt-shallow", iterations=-1),
        "iterations of spt-shallow must be a whole number from 0 on, not -1",
    ),
    (dict(slug="da-vpt", temperature=1e-300), "temperature of da-vpt must be a number from 1e-06"),
    (
        dict(slug="da-vpt", margin=-0.1),
        "margin of da-vpt must be a number of at least 0 and below 1, not -0.1",
    ),
    (dict(slug="adaptformer", scale=0), "scale of adaptformer must be a number from 1e-06"),
    (dict(slug="gate-vpt", gate=1e300), "gate of gate-vpt must be a number from -1e.06 to 1e.06"),
    (dict(slug="e2vpt", kept_at_least=0), "kept_at_least of e2vpt must be a whole number of 1"),
    (dict(slug="ap", kind=None), "setting kind of ap must be str, not None"),
    (
        dict(slug="vpt-deep", prompt_tokens="ten"),
        "setting prompt_tokens of vpt-deep must be a whole number .*not 'ten'",
    ),
    (
        dict(slug="vpt-deep", prompt_tokens=None),
        "setting prompt_tokens of vpt-deep must be a whole number .*not None",
    ),
    (
        dict(slug="bias", categories="query"),
        "setting categories of bias must be a list of different words, not 'query'",
    ),
    (
        dict(slug="lora", rank=2.5),
        "setting rank of lora must be a whole number of 1 to 65,536, not 2.5",
    ),
    (
        dict(slug="lora", alpha="1"),
        "setting alpha of lora must be a number from 1e-06 to 1e.06 or None, not '1'",
    ),
    (
        dict(slug="da-vpt", beta="x"),
        "setting beta of da-vpt must be a number from 0 to 1e.06, not 'x'",
    ),
    (
        dict(slug="da-vpt-plus", beta=float("nan")),
        "setting beta of da-vpt-plus must be a number .*not nan",
    ),
    (
        dict(slug="da-vpt-plus", class_token=1),
        "setting class_token of da-vpt-plus must be bool, not 1",
    ),
]


@pytest.mark.refused
@pytest.mark.parametrize(("given", "message"), BAD)
def test_bad_settings_are_refused_with_a_remedy(vit, given, message):
    given = {"num_classes": 3, **given}
    with pytest.raises(vp.BadInput, match=message):
        vp.build_method(given.pop("slug"), vit, given.pop("num_classes"), **given)


WRONG = [
    None,
    True,
    "x",
    2.5,
    3,
    -1,
    [],
    ["x"],
    [2.5],
    {},
    object(),
    float("nan"),
    float("inf"),
    torch.zeros(2, 2),
    b"x",
]


def test_every_method_has_a_rate():
    known = load_yaml(paths.MANIFESTS / "recipes.yaml")["quick"]["vit"]
    missing = [slug for slug in METHODS if slug not in known]
    assert not missing, (
        f"visprompt rates {missing[0]} finds the line that data_manifests/recipes.yaml lacks"
    )


def test_a_method_is_a_file(tmp_path, monkeypatch):
    for path in Path(methods.__file__).parent.glob("*.py"):
        shutil.copy(path, tmp_path)
    (tmp_path / "zz_new_one.py").write_text(
        "class Settings:\n    pass\n\n\nclass Method(base.Method):\n    pass\n"
    )
    (tmp_path / "helper.py").write_text("class Settings:\n    pass\n")
    monkeypatch.setattr(methods, "__file__", str(tmp_path / "__init__.py"))
    assert (
        methods.slugs() == [*METHODS, "zz-new-one"]
        and METHODS[: len(methods.ORDER)] == methods.ORDER
    )


@pytest.mark.parametrize("slug", METHODS)
def test_no_setting_of_any_type_raises_anything_else(vit, slug):
    """A value is taken or refused in one line, whatever it is."""
    names = [
        field.name
        for field in fields(
            importlib.import_module(f"visprompt.methods.{slug.replace('-', '_')}").Settings
        )
    ]
    for name, value in itertools.product(names, WRONG):
        try:
            vp.build_method(slug, vit, 3, **{name: value})
        except vp.BadInput as error:
            assert "\n" not in str(error)


def settings_of(slug):
    return typing.get_type_hints(
        importlib.import_module(f"visprompt.methods.{slug.replace('-', '_')}").Settings
    )


def impossible(hint):
    """Values of the annotation's own type that no method can do anything with."""
    kinds = {part for part in (hint, *typing.get_args(hint))}
    found = [st.lists(st.sampled_from("abc"), min_size=4).map(tuple), st.text("xyz", min_size=1)]
    if kinds & {int, checks.Count, checks.Rounds}:
        found.append(st.integers(max_value=-1) | st.integers(min_value=10**10))
    if kinds & {checks.Count}:
        found.append(st.just(0))
    if kinds & {float, checks.Positive, checks.Weight, checks.Number, checks.Share}:
        found.append(st.floats(min_value=1e7) | st.floats(max_value=-1e7) | st.just(float("nan")))
    if kinds & {checks.Positive}:
        found.append(st.floats(max_value=0))
    if kinds & {checks.Weight, checks.Share}:
        found.append(st.floats(max_value=0, exclude_max=True))
    if kinds & {checks.Blocks}:
        found.append(st.lists(st.integers(0, 3), min_size=5).map(tuple))
    return st.one_of(found)


SETTINGS = [
    (slug, name) for slug in METHODS for name, hint in settings_of(slug).items() if hint is not bool
]


@pytest.mark.refused
@pytest.mark.parametrize(("slug", "name"), SETTINGS)
@settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_no_impossible_value_of_a_setting_is_taken(vit, slug, name, data):
    value = data.draw(impossible(settings_of(slug)[name]))
    with pytest.raises(vp.BadInput) as found:
        vp.build_method(slug, vit, 3, **{name: value})
    assert "\n" not in str(found.value)


def test_a_list_stands_for_a_tuple(vit):
    assert vp.build_method(
        "bias", vit, 3, categories=["query", "fc1"]
    ).method.settings.categories == ("query", "fc1")
    assert vp.build_method("lora", vit, 3, alpha=4).method.scale == 0.4


def test_something_else_than_a_backbone_is_refused():
    with pytest.raises(vp.BadInput, match="give a backbone that load_backbone returned, not a str"):
        vp.build_method("ap", "vit_micro_patch4_24", 3)


def test_concatenation_is_refused_on_a_resnet(resnet):
    with pytest.raises(vp.BadInput, match="on a ResNet use"):
        vp.build_method("ap", resnet, 3, kind="concatenate")


@pytest.mark.parametrize("start", [20.0, 1e-4])
def test_a_temperature_outside_its_bounds_acts_as_the_bound_and_comes_back(vit, start):
    model = vp.build_method("gate-vpt", vit, 3, prompt_tokens=2)
    settings, temperatures = model.method.settings, model.method.temperatures
    images = torch.randn(4, 3, 16, 16, generator=torch.Generator().manual_seed(0))
    nearest = settings.highest if start > 1 else settings.lowest
    found = []
    for value in (start, nearest):
        with torch.no_grad():
            temperatures.fill_(value)
        found.append(model(images))
    torch.testing.assert_close(*found)
    with torch.no_grad():
        temperatures.fill_(start)
    model(images).square().sum().backward()
    assert temperatures.grad.ne(0).all()
