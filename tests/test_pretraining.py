"""Embedded backbones: the shipped files fit the builder and know the source as well as they say."""

import json
from dataclasses import asdict, replace

import numpy as np
import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file

from visprompt import pretraining
from visprompt.architectures import build_embedded, embedded, weights_file
from visprompt.drawing import SOURCE_CLASSES, draw
from visprompt.errors import BadInput

NAMES = sorted(embedded())


def test_every_embedded_backbone_has_a_recipe():
    assert sorted(pretraining.NAMES.values()) == NAMES
    assert pretraining.NAMES.keys() == pretraining.RECIPES.keys()
    with pytest.raises(BadInput, match="Did you mean 'vit_micro_patch4_24'"):
        build_embedded("vit_micro")
    with pytest.raises(BadInput, match="Allowed: resnet, vit"):
        pretraining.pretrain("swin")


@pytest.mark.parametrize("name", NAMES)
def test_weights_fit_the_builder(name):
    model, state = build_embedded(name), load_file(weights_file(name))
    wanted = {k: v.shape for k, v in model.state_dict().items()}
    assert {k: v.shape for k, v in state.items()} == wanted
    assert all(v.isfinite().all() for v in state.values())
    assert all(v.dtype == torch.float32 for k, v in state.items() if not k.endswith("num_batches_tracked"))
    assert weights_file(name).stat().st_size < 5e6
    stages = [part for key, part in model.named_children() if key.startswith(("blocks", "layer"))]
    assert sum(map(len, stages)) >= 8
    images = torch.zeros(2, 3, 24, 24)
    assert model.eval()(images).shape == (2, SOURCE_CLASSES)
    assert build_embedded(name, 7).eval()(images).shape == (2, 7)


@pytest.mark.parametrize("which", sorted(pretraining.NAMES))
def test_report_is_of_this_recipe(which):
    path = weights_file(pretraining.NAMES[which])
    report = json.loads(path.with_suffix(".json").read_text())
    assert report["recipe"] == asdict(pretraining.RECIPES[which]) and report["name"] == path.stem
    with safe_open(path, "pt") as file:
        note = file.metadata()
    assert json.loads(note["recipe"]) == report["recipe"]
    assert float(note["source_accuracy"]) == report["source_accuracy"]
    entry = embedded()[path.stem]
    assert entry["source_accuracy"] == report["source_accuracy"]
    assert entry["mean"] == [report["recipe"]["mean"]] * 3 and entry["std"] == [report["recipe"]["std"]] * 3
    assert report["curve"][0]["loss"] > 1.05 * report["curve"][-1]["loss"]


@pytest.mark.parametrize("which", sorted(pretraining.NAMES))
def test_source_accuracy_is_reached_on_new_pictures(which):
    """Fresh pictures, within 4 standard errors of a difference of two shares."""
    name, recipe, count = pretraining.NAMES[which], pretraining.RECIPES[which], 600
    model = build_embedded(name)
    model.load_state_dict(load_file(weights_file(name)), strict=False)
    images, labels = draw("source", count, seed=987)
    images, labels = torch.from_numpy(images.transpose(0, 3, 1, 2)), torch.from_numpy(labels)
    got = pretraining.accuracy(model, images, labels, recipe)
    stated = embedded()[name]["source_accuracy"]
    error = np.sqrt(stated * (1 - stated) * (1 / count + 1 / recipe.held_out))
    assert abs(got - stated) < 4 * error
    assert stated > 0.7  # the quality that the chapters rely on; chance is below 0.01


@pytest.mark.parametrize("which", sorted(pretraining.NAMES))
def test_training_again_repeats(which, tmp_path):
    """Two tiny trainings give the same tensors, learn something, and write both files whole."""
    tiny = replace(pretraining.RECIPES[which], images=256, held_out=50, batch=64, epochs=1,
                   mae_epochs=min(1, pretraining.RECIPES[which].mae_epochs))
    reports = [pretraining.pretrain(which, tiny, folder=tmp_path / str(i)) for i in range(2)]
    file = weights_file(pretraining.NAMES[which]).name
    first, second = (load_file(tmp_path / str(i) / file) for i in range(2))
    assert all(torch.equal(first[k], second[k]) for k in first)
    assert reports[0]["source_accuracy"] == reports[1]["source_accuracy"]
    assert reports[0]["recipe"]["images"] == 256 and reports[0]["curve"][-1]["step"] == 4
    assert not list(tmp_path.rglob("*.part")) and len(list(tmp_path.rglob("*.json"))) == 2
    torch.manual_seed(0)
    start = build_embedded(pretraining.NAMES[which]).state_dict()
    assert any(not torch.equal(start[k], first[k]) for k in first)


def test_painter_sees_only_what_is_not_hidden():
    """Changing hidden patches changes the target alone: the painted pixels stay as they are."""
    torch.manual_seed(0)
    painter = pretraining.Painter(build_embedded("vit_micro_patch4_24"), 0.67).eval()
    assert painter.keep == 12
    seen = []
    painter.paint.register_forward_hook(lambda _, __, out: seen.append(out.detach()))
    images = torch.rand(1, 3, 24, 24)
    with torch.no_grad():
        for change in (0.0, 1.0):
            torch.manual_seed(1)
            hidden = torch.rand(1, 36).argsort(1)[0, painter.keep:]
            changed = images.clone()
            for patch in hidden.tolist():
                r, c = divmod(patch, 6)
                changed[..., 4 * r:4 * r + 4, 4 * c:4 * c + 4] += change
            torch.manual_seed(1)
            loss = painter(changed)
            assert loss > 0
    torch.testing.assert_close(seen[0], seen[1])


def test_augmentation_moves_and_swaps_but_invents_nothing():
    torch.manual_seed(0)
    images = torch.randint(0, 256, (16, 3, 24, 24), dtype=torch.uint8)
    moved = pretraining._augment(images, 2)
    assert moved.shape == images.shape and not torch.equal(moved, images.float())
    for before, after in zip(images, moved, strict=True):
        sums = before.float()[:, 4:-4, 4:-4].sum((1, 2)).sort().values
        found = [torch.allclose(after[:, 4 + y:20 + y, 4 + x:20 + x].sum((1, 2)).sort().values, sums)
                 for y in range(-2, 3) for x in range(-2, 3)]
        assert any(found)
