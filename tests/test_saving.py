"""A tuned method is a small file that fits one backbone."""

import copy
import errno
import json

import pytest
import torch
from conftest import carries, small_vit, tiny_task
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from test_definitions import images_of, randomised

import visprompt as vp
from visprompt.methods import saving
from visprompt.models.backbones import FAMILIES
from visprompt.training.loop import fit
from visprompt.training.recipe import Recipe

CARRIED = [(slug, family) for slug in vp.METHODS for family in FAMILIES if carries(slug, family)]


@pytest.mark.parametrize(("slug", "family"), CARRIED)
def test_a_saved_method_gives_the_same_logits(slug, family, request, tmp_path):
    backbone = request.getfixturevalue(family)
    chosen = {"ar": "none"} if (slug, family) == ("ivpt", "swin") else {}
    model = vp.build_method(slug, backbone, 3, **chosen)
    if family == "vit":
        fit(model, tiny_task(), Recipe(epochs=1, batch_size=8), seed=3)
    else:
        randomised(model)
    images = images_of(backbone, 2, torch.float32)
    vp.save_method(model, tmp_path / "tuned.safetensors")
    with torch.no_grad():
        assert torch.equal(
            vp.load_method(tmp_path / "tuned.safetensors", backbone)(images), model(images)
        )
    assert [path.name for path in tmp_path.iterdir()] == ["tuned.safetensors"]
    if slug == "vpt-deep":  # the backbone is not in the file
        own = 4 * vp.count_parameters(model)["total"] + 4 * 2 * backbone.width
        assert own < (tmp_path / "tuned.safetensors").stat().st_size < own + 3000


@pytest.mark.parametrize("slug", ["lora", "ssf", "bias", "norm-tune", "full-finetune"])
@pytest.mark.parametrize("pool", ["token", "avg"])
def test_a_merged_method_gives_the_same_logits(slug, pool):
    backbone = small_vit(pool)
    model = vp.build_method(slug, backbone, 3)
    fit(model, tiny_task(), Recipe(epochs=2, batch_size=8, learning_rate=0.05), seed=0)
    images = images_of(backbone, 2, torch.float32)
    plain = vp.merged(model)
    with torch.no_grad():
        assert torch.allclose(plain(images), model(images), atol=1e-5)
        start = vp.build_method(slug, backbone, 3)
        # it did learn
        assert not torch.allclose(
            start.features(start.below(images)), model.features(model.below(images)), atol=1e-3
        )
    assert vp.count_parameters(plain)["method"] == 0


def test_prompts_cannot_be_merged(vit):
    with pytest.raises(vp.BadInput, match="only lora, ssf, bias"):
        vp.merged(vp.build_method("vpt-deep", vit, 3))


def test_files_that_do_not_fit_are_refused(vit, tmp_path):
    path = tmp_path / "tuned.safetensors"
    with pytest.raises(vp.BadInput, match="does not exist"):
        vp.load_method(path, vit)
    with pytest.raises(vp.BadInput, match=r"ends in .safetensors"):
        vp.save_method(vp.build_method("ap", vit, 3), tmp_path / "tuned.pt")
    vp.save_method(vp.build_method("ap", vit, 3), path)
    other = small_vit()
    with torch.no_grad():
        other.model.cls_token.add_(1)
    with pytest.raises(vp.BadInput, match="was tuned on test_vit"):
        vp.load_method(path, other)
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(vp.BadInput, match="damaged"):
        vp.load_method(path, vit)
    save_file({"x": torch.zeros(1)}, path)
    with pytest.raises(vp.BadInput, match="not written by save_method"):
        vp.load_method(path, vit)


@pytest.mark.refused
@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda model, path: vp.save_method(None, path), "the model must be TunedModel, not None"),
        (
            lambda model, path: vp.save_method(model.source, path),
            "the model must be TunedModel, not ",
        ),
        (lambda model, path: vp.save_method(path, model), "the model must be TunedModel, not "),
        (lambda model, path: vp.save_method(model, None), "the path of a saved method must be"),
        (lambda model, path: vp.save_method(model, 3), "the path of a saved method must be"),
        (
            lambda model, path: vp.save_method(model, bytes(path)),
            "the path of a saved method must be",
        ),
        (lambda model, path: vp.save_method(model, ""), "ends in .safetensors"),
        (lambda model, path: vp.save_method(model, path.parent), "ends in .safetensors"),
        (
            lambda model, path: vp.save_method(model, "a\0.safetensors"),
            "cannot be written .embedded null byte",
        ),
        (
            lambda model, path: vp.save_method(model, "a\ud800.safetensors"),
            "cannot be written .*surrogates",
        ),
        (
            lambda model, path: vp.save_method(model, path.parent / ("x" * 5000 + ".safetensors")),
            "cannot be written",
        ),
        (
            lambda model, path: vp.save_method(filled(model, float("nan")), path),
            "NaN or infinity in 'head.weight'; fit it again",
        ),
        (
            lambda model, path: vp.save_method(filled(model, float("inf")), path),
            "NaN or infinity in 'head.weight'; fit it again",
        ),
        (
            lambda model, path: vp.save_method(of_shapes(), path),
            "shapes alone.*without device='meta'",
        ),
        (
            lambda model, path: vp.fit(of_shapes(), tiny_task(24)),
            "shapes alone.*without device='meta'",
        ),
        (lambda model, path: vp.load_method(path, None), "the backbone must be Backbone, not None"),
        (
            lambda model, path: vp.load_method(path, "vit_micro_patch4_24"),
            "the backbone must be Backbone, not 'vit_micro",
        ),
        (lambda model, path: vp.load_method(path, model), "the backbone must be Backbone, not "),
        (
            lambda model, path: vp.load_method(None, model.source),
            "the path of a saved method must be",
        ),
        (
            lambda model, path: vp.load_method("", model.source),
            "Give the path of a file that save_method wrote",
        ),
        (
            lambda model, path: vp.load_method("a\0", model.source),
            "Give the path of a file that save_method wrote",
        ),
        (lambda model, path: vp.load_method(path.parent, model.source), "is no file"),
        (lambda model, path: vp.merged(model.source), "the model must be TunedModel, not "),
        (
            lambda model, path: vp.merged(vp.build_method("ap", model.source, 3)),
            "only lora, ssf, bias",
        ),
        (
            lambda model, path: vp.build_method(torch.zeros(50, 50), model.source, 3),
            "unknown method tensor",
        ),
        (
            lambda model, path: vp.build_method("x" * 5000, model.source, 3),
            "unknown method 'xxxx.*xxx",
        ),
        (lambda model, path: vp.published(torch.zeros(3, 3)), "unknown artifact tensor"),
        (lambda model, path: vp.published(["ap.table-2"]), "unknown artifact"),
        (lambda model, path: vp.audit(torch.zeros(9, 9)), "unknown paper tensor"),
        (lambda model, path: vp.artifacts(3), "unknown paper 3"),
        (lambda model, path: vp.claims(torch.zeros(3, 3)), "unknown paper tensor"),
        (lambda model, path: vp.claims(wanted=3), "unknown verdict 3"),
        (lambda model, path: vp.claims(profile=3), "unknown profile 3"),
    ],
)
def test_what_the_other_doors_cannot_take_is_one_line(call, told, vit, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    model, path = vp.build_method("linear-probe", vit, 3), tmp_path / "tuned.safetensors"
    vp.save_method(model, path)
    with pytest.raises(vp.BadInput, match=told) as found:
        call(model, path)
    assert "\n" not in str(found.value) and len(str(found.value)) < 12_000
    assert [path.name for path in tmp_path.iterdir()] == ["tuned.safetensors"]


def filled(model, value):
    with torch.no_grad():
        model.head.weight.fill_(value)
    return model


def of_shapes():
    return vp.build_method(
        "linear-probe", vp.load_backbone("vit_micro_patch4_24", device="meta"), 3
    )


def learned(slug, backbone, **settings):
    """A method far from its start, also where that is the backbone's own weights."""
    model = randomised(vp.build_method(slug, backbone, 3, **settings))
    with torch.no_grad():
        for index, parameter in enumerate(model.method.trained(model.backbone)):
            generator = torch.Generator().manual_seed(index)
            parameter.add_(0.1 * torch.randn(parameter.shape, generator=generator).to(parameter))
    return model


@pytest.mark.refused
@pytest.mark.parametrize("slug", ["lora", "full-finetune", "norm-tune", "linear-probe"])
def test_what_is_saved_on_merged_weights_is_refused_on_the_original(slug, vit, tmp_path):
    model = learned(slug, vit)
    if slug != "linear-probe":
        plain = vp.merged(model)
        vp.save_method(plain, tmp_path / "tuned.safetensors")
        refused(
            r"was tuned on test_vit with weights [0-9a-f]{12}; this",
            tmp_path / "tuned.safetensors",
            vit,
        )
        images = images_of(vit, 2, torch.float32)
        with torch.no_grad():
            again = vp.load_method(tmp_path / "tuned.safetensors", plain.source)(images)
            assert torch.equal(again, plain(images))
    by_hand = small_vit()
    by_hand.load_state_dict({key: value * 1.1 for key, value in vit.state_dict().items()})
    vp.save_method(model, tmp_path / "tuned.safetensors")
    refused("this backbone is test_vit with weights", tmp_path / "tuned.safetensors", by_hand)


@pytest.mark.parametrize("slug", ["lora", "ssf", "bias", "norm-tune", "full-finetune"])
def test_merging_in_float64_is_exact(slug, tmp_path):
    backbone = small_vit().double()
    model = learned(slug, backbone)
    images = images_of(backbone, 2, torch.float64)
    vp.save_method(model, tmp_path / "tuned.safetensors")
    loaded = vp.load_method(tmp_path / "tuned.safetensors", backbone)
    with torch.no_grad():
        logits = model(images)
        assert logits.dtype == torch.float64
        assert torch.equal(loaded(images), logits)
        assert torch.allclose(vp.merged(model)(images), logits, rtol=0, atol=1e-9)
        assert torch.allclose(vp.merged(loaded)(images), logits, rtol=0, atol=1e-9)
        start = vp.build_method(slug, backbone, 3)
        assert not torch.allclose(
            start.features(start.below(images)), model.features(model.below(images)), atol=1e-3
        )


@pytest.mark.parametrize(("slug", "family"), CARRIED)
def test_methods_on_a_float64_backbone(slug, family, request):
    """They start with the very numbers that they have on float32."""
    chosen = {"ar": "none"} if (slug, family) == ("ivpt", "swin") else {}
    backbone = request.getfixturevalue(family)
    single = vp.build_method(slug, backbone, 3, **chosen)
    model = vp.build_method(slug, copy.deepcopy(backbone).double(), 3, **chosen)
    state = model.state_dict()
    assert all(
        torch.equal(state[key], value.to(state[key])) for key, value in single.state_dict().items()
    )
    with torch.no_grad():
        images = images_of(backbone, 2, torch.float64)
        assert model(images).dtype == torch.float64
        assert torch.allclose(model(images), single(images.float()).double(), atol=1e-4)


def refused(match, path, backbone):
    """In one line that names the file."""
    with pytest.raises(vp.BadInput, match=match) as caught:
        vp.load_method(path, backbone)
    assert str(path) in str(caught.value) and "\n" not in str(caught.value)


def rewritten(path, own=None, /, **about):
    """A saved method with other tensors, or with other entries in what it says of itself; None
    takes one out."""
    with safe_open(path, "pt") as file:
        said = {**json.loads(file.metadata()["visprompt"]), **about}
        kept = {key: file.get_tensor(key) for key in file.keys()} if own is None else own  # noqa: SIM118
    said = {key: value for key, value in said.items() if value is not None}
    save_file(kept, path, metadata={"visprompt": json.dumps(said)})


@pytest.mark.parametrize(("slug", "family"), CARRIED)
def test_every_tensor_of_a_saved_method_is_needed_and_finite(slug, family, request, tmp_path):
    backbone, path = request.getfixturevalue(family), tmp_path / "tuned.safetensors"
    model = learned(
        slug, backbone, **({"ar": "none"} if (slug, family) == ("ivpt", "swin") else {})
    )
    own = saving.own_tensors(model)
    assert {"head.weight", "head.bias"} < set(own)
    if model.method.trains_backbone:
        assert any(key.startswith("backbone.") for key in own)
    vp.save_method(model, path)
    for key, value in list(own.items())[:: -(-len(own) // 12)]:  # a dozen of them
        rewritten(path, {other: part for other, part in own.items() if other != key})
        refused(f"lacks '{key}'", path, backbone)
        rewritten(path, {**own, key: value[None]})
        refused(f"holds '{key}', which does not fit {slug}", path, backbone)
        for number in (float("nan"), float("-inf")) if value.is_floating_point() else ():
            bad = value.clone()
            bad.view(-1)[-1] = number
            rewritten(path, {**own, key: bad})
            refused(f"has NaN or infinity in '{key}'", path, backbone)
    rewritten(path, own)
    vp.load_method(path, backbone)


def test_a_saved_method_cannot_change_a_frozen_backbone(vit, tmp_path):
    path, before = tmp_path / "tuned.safetensors", vit.fingerprint
    model = vp.build_method("ap", vit, 3)
    vp.save_method(model, path)
    rewritten(
        path,
        {**saving.own_tensors(model), "backbone.model.cls_token": vit.model.cls_token.detach() + 1},
    )
    refused("holds 'backbone.model.cls_token'", path, vit)
    assert vit.fingerprint == before


SAID = [
    (dict(method=None), "KeyError"),
    (dict(tensors=None), "KeyError"),
    (dict(method="loraa"), "Did you mean 'lora'"),
    (dict(method=3), "method must be str"),
    (dict(settings=[]), "settings must be dict"),
    (dict(settings={"rang": 4}), "Did you mean 'rank'"),
    (dict(settings={"rank": 2.5}), "setting rank of lora must be a whole number"),
    (dict(settings={"slug": "ap"}), "slug"),
    (dict(settings={"rank": 1000}), "a rank of 1 to 16"),
    (dict(settings={"rank": 3}), "holds 'method.down.0', which does not fit"),
    (dict(num_classes="3"), "num_classes must be int"),
    (dict(num_classes=True), "num_classes must be int"),
    (dict(num_classes=1), "2 or more"),
    (dict(num_classes=4), "holds 'head.bias'"),
    (dict(tensors=[3]), "tensors must be list"),
    (dict(tensors=["head.bais"]), "lacks 'head.bais'"),
    (dict(backbone=3), "backbone must be str"),
    (dict(fingerprint="random, seed 0"), "Load the backbone it was tuned on"),
]


@pytest.mark.refused
@pytest.mark.parametrize(("about", "match"), SAID, ids=str)
def test_what_a_saved_method_says_of_itself_is_checked(about, match, vit, tmp_path):
    path = tmp_path / "tuned.safetensors"
    vp.save_method(vp.build_method("lora", vit, 3), path)
    rewritten(path, **about)
    refused(match, path, vit)


@pytest.mark.refused
@pytest.mark.parametrize("text", ["", "{", "[]", "3", "null", '"x"'])
def test_metadata_that_is_no_object_is_refused(text, vit, tmp_path):
    save_file({"x": torch.zeros(1)}, tmp_path / "x.safetensors", metadata={"visprompt": text})
    refused("not written by save_method", tmp_path / "x.safetensors", vit)


FAILURES = [
    OSError(errno.ENOSPC, "No space left on device"),
    SafetensorError("I/O error: No space\nleft"),
]


@pytest.mark.parametrize("error", FAILURES, ids=["OSError", "SafetensorError"])
def test_a_full_disk_leaves_what_was_there(error, vit, tmp_path, monkeypatch):
    path, model = tmp_path / "tuned.safetensors", vp.build_method("ap", vit, 3)
    vp.save_method(model, path)
    before = path.read_bytes()

    def full(tensors, name, metadata):
        with open(name, "wb") as file:
            file.write(b"half")
        raise error

    monkeypatch.setattr(saving, "save_file", full)
    for place in (path, tmp_path / "new.safetensors"):
        with pytest.raises(vp.BadInput, match="cannot be written .*No space left") as caught:
            vp.save_method(model, place)
        assert "\n" not in str(caught.value)
    assert path.read_bytes() == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["tuned.safetensors"]


def test_places_that_cannot_be_written(vit, tmp_path):
    model = vp.build_method("ap", vit, 3)
    (tmp_path / "file").write_text("")
    (tmp_path / "folder.safetensors").mkdir()
    for name in ("file/x.safetensors", "folder.safetensors", f"{'x' * 300}.safetensors"):
        with pytest.raises(vp.BadInput, match="cannot be written"):
            vp.save_method(model, tmp_path / name)
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["file", "folder.safetensors"]
    for path in (3, None):
        with pytest.raises(vp.BadInput, match="the path of a saved method must be str"):
            vp.save_method(model, path)
        with pytest.raises(vp.BadInput, match="the path of a saved method must be str"):
            vp.load_method(path, vit)
    refused("is no file", tmp_path / "folder.safetensors", vit)
    refused("does not exist", tmp_path / f"{'x' * 300}.safetensors", vit)
