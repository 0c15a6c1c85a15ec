"""A backbone says which weights it has now, and refuses what cannot be loaded."""

import argparse
import copy

import pytest
import torch
from conftest import small_vit, tiny_task
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import save_file

import visprompt as vp
from visprompt.models import backbones
from visprompt.models.backbones import Backbone
from visprompt.models.remembered import remembered_fingerprint
from visprompt.training.loop import fit, tune
from visprompt.training.recipe import Recipe

MICRO = "vit_micro_patch4_24"
RECIPE = Recipe(epochs=1, batch_size=8)


def changed(backbone, key="blocks.0.mlp.fc1.weight"):
    """A copy with one tensor changed in place."""
    other = copy.deepcopy(backbone)
    with torch.no_grad():
        other.model.get_parameter(key).add_(0.5)
    return other


def test_the_names_of_kept_weights_stay():
    """Records name them."""
    assert vp.load_backbone(MICRO, "pretrained").fingerprint == "fc3d4f6a9ea6"
    assert vp.load_backbone("resnet_micro_24", "pretrained").fingerprint == "663f7845699a"


def test_a_remembered_fingerprint_sees_every_change(monkeypatch):
    backbone, hashed = small_vit(), []
    whole = backbones.fingerprint_weights
    monkeypatch.setattr(
        backbones, "fingerprint_weights", lambda one: hashed.append(one) or whole(one)
    )
    weight, seen = backbone.model.blocks[0].mlp.fc1.weight, []

    def in_place():
        with torch.no_grad():
            weight[0, 0] += 1

    def by_data():
        weight.data[0, 0] += 1  # shows in neither storage nor version

    def swapped():
        weight.data[0] = weight.data[0].flip(0)

    def hooked():
        backbone.model.blocks[0].register_forward_hook(lambda *given: None)

    for change in (lambda: None, in_place, by_data, swapped, hooked):
        change()
        seen += [remembered_fingerprint(backbone) for _ in range(2)]
        assert seen[-1] == seen[-2] == backbone.fingerprint
    assert len({*seen}) == 5 and len(hashed) == 10  # one a change, and one of each comparison


def test_a_fingerprint_follows_the_weights(vit):
    assert len(vit.fingerprint) == 12 and vit.fingerprint == copy.deepcopy(vit).fingerprint
    by_hand = Backbone(small_vit().model, vit.name, 16, vit.mean, vit.std)
    assert by_hand.fingerprint == vit.fingerprint
    other = changed(vit)
    by_hand.load_state_dict(other.state_dict())
    assert by_hand.fingerprint == other.fingerprint != vit.fingerprint
    kinds = [
        copy.deepcopy(vit).to(kind).fingerprint
        for kind in (torch.float64, torch.bfloat16, torch.float16)
    ]
    assert len({vit.fingerprint, *kinds}) == 4
    assert copy.deepcopy(vit).double().float().fingerprint == vit.fingerprint
    assert (
        Backbone(small_vit().model, "other", 16, vit.mean, vit.std).fingerprint != vit.fingerprint
    )


@settings(max_examples=30, deadline=None)
@given(st.data())
def test_every_tensor_counts_but_those_of_the_classifier(data):
    backbone = vp.load_backbone("resnet_micro_24", "pretrained")
    before, state = backbone.fingerprint, backbone.model.state_dict()
    key = data.draw(st.sampled_from(sorted(state)))
    place = data.draw(st.tuples(*[st.integers(0, size - 1) for size in state[key].shape]))
    state[key][place] += 1
    assert (backbone.fingerprint == before) == key.startswith("fc.")


@pytest.mark.parametrize("name", [MICRO, "resnet_micro_24", "vit_tiny_patch16_224"])
def test_random_weights_are_named_by_their_seed_until_they_change(name):
    backbone = vp.load_backbone(name)
    assert backbone.fingerprint == copy.deepcopy(backbone).to("cpu").fingerprint == "random, seed 0"
    other = copy.deepcopy(backbone)
    with torch.no_grad():
        next(other.parameters()).mul_(1.5)
    assert len(other.fingerprint) == 12
    other.load_state_dict(backbone.state_dict())
    assert other.fingerprint == "random, seed 0"
    assert vp.load_backbone(name, device="meta").fingerprint == ""


def test_activations_are_not_shared_by_other_weights(vit):
    """The second fit is the one that could be served what the first left behind."""
    tuned = vp.build_method("lora", vit, 3)
    fit(tuned, tiny_task(), Recipe(epochs=2, batch_size=8, learning_rate=0.05), seed=0)
    by_hand = copy.deepcopy(vit)
    by_hand.load_state_dict(changed(vit).state_dict())
    nearly = Backbone(copy.deepcopy(vit.model), vit.name, 16, (0.1,) * 3, vit.std)
    for other in (vp.merged(tuned).source, by_hand, nearly):
        fit(vp.build_method("linear-probe", vit, 3), tiny_task(), RECIPE, seed=0)
        shared = fit(vp.build_method("linear-probe", other, 3), tiny_task(), RECIPE, seed=0)
        alone = fit(
            vp.build_method("linear-probe", other, 3), tiny_task(), RECIPE, seed=0, cache=False
        )
        assert shared["loss"] == pytest.approx(alone["loss"], abs=1e-5)
        assert shared["cached_below"] == 4


def test_activations_are_not_shared_by_random_weights_of_other_networks():
    task = tiny_task(24)
    for name in (MICRO, "vit_nano_patch4_24"):
        found = fit(
            vp.build_method("linear-probe", vp.load_backbone(name), 3), task, RECIPE, seed=0
        )
        plain = fit(
            vp.build_method("linear-probe", vp.load_backbone(name), 3),
            task,
            RECIPE,
            seed=0,
            cache=False,
        )
        assert found["loss"] == pytest.approx(plain["loss"], abs=1e-5)


def test_records_are_not_shared_by_other_weights(vit, stores):
    tuned = vp.build_method("lora", vit, 3)
    fit(tuned, tiny_task(), Recipe(epochs=2, batch_size=8, learning_rate=0.05), seed=0)
    first = tune(vp.build_method("linear-probe", vit, 3), tiny_task(), RECIPE)
    others = [
        vp.build_method("linear-probe", other, 3)
        for other in (vp.merged(tuned).source, changed(vit))
    ]
    assert len({first.id, *(tune(other, tiny_task(), RECIPE).id for other in others)}) == 3


WRAPPED = {
    "model": lambda state: {"model": state, "epoch": 3, "args": argparse.Namespace(lr=1)},
    "state_dict": lambda state: {"state_dict": state},
    "both": lambda state: {"state_dict": {"model": state}},
    "module": lambda state: {"model": {f"module.{key}": value for key, value in state.items()}},
    "inner module": lambda state: {
        "state_dict": {"model": {f"module.{key}": value for key, value in state.items()}}
    },
    "float64": lambda state: {key: value.double() for key, value in state.items()},
}


@pytest.mark.parametrize("kind", WRAPPED)
def test_wrapped_weights_load(kind, tmp_path):
    kept = vp.load_backbone(MICRO, "pretrained")
    torch.save(WRAPPED[kind](kept.model.state_dict()), tmp_path / "w.pth")
    assert vp.load_backbone(MICRO, tmp_path / "w.pth").fingerprint == kept.fingerprint


NO_TENSORS = [
    {"model": 3},
    {"model": {}},
    {"state_dict": None},
    [],
    {},
    {"cls_token": 1.5},
    {0: torch.zeros(1)},
    torch.zeros(2),
    "x",
]


@pytest.mark.refused
@pytest.mark.parametrize("content", NO_TENSORS, ids=str)
def test_files_of_something_else_are_refused(content, tmp_path):
    torch.save(content, tmp_path / "w.pth")
    refused("weights file .*w.pth", MICRO, tmp_path / "w.pth")


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), 1e300])
def test_weights_that_are_no_numbers_are_refused(bad, tmp_path):
    state = {
        key: value.double() for key, value in vp.load_backbone(MICRO).model.state_dict().items()
    }
    state["blocks.3.norm1.bias"][2] = bad
    save_file(state, tmp_path / "w.safetensors")
    refused("NaN or infinity in 'blocks.3.norm1.bias'", MICRO, tmp_path / "w.safetensors")


def refused(match, *args, **kwargs):
    """In one line."""
    with pytest.raises(vp.BadInput, match=match) as caught:
        vp.load_backbone(*args, **kwargs)
    assert "\n" not in str(caught.value)


def test_places_that_are_no_weights_file(tmp_path):
    refused("is no file", MICRO, tmp_path)
    refused("does not exist", MICRO, tmp_path / "none.pth")
    refused("does not exist", MICRO, "x" * 5000)
    (tmp_path / "w.pth").write_bytes(b"")
    refused("cannot be read", MICRO, tmp_path / "w.pth")


def test_arguments_of_a_wrong_kind():
    for name in (3, None, ["vit"]):
        refused("the backbone's name must be str", name)
    for weights in (3, True, [], {}):
        refused("weights must be str", MICRO, weights)
    for device in ("nonsense", "", None, 2.5, "cuda:99"):
        refused("cannot be used here.*give 'cpu'", MICRO, device=device)
    if not torch.cuda.is_available():
        refused("device 'cuda' cannot be used here", MICRO, device="cuda")
    refused(
        "unknown weights in the backbone's name.*timm has vit_tiny", "vit_tiny_patch16_224.nonsense"
    )
    assert vp.load_backbone(MICRO, device=torch.device("meta")).fingerprint == ""
