"""Real weights and real images, where a folder of them is given; nothing in the project depends on
it."""

import os
from pathlib import Path

import pytest
import torch

import visprompt as vp
from visprompt.data.stored import Stored
from visprompt.models.intermediates import resized
from visprompt.training.recipe import Recipe

REAL = Path(os.environ.get("VISPROMPT_REAL", "/nowhere"))
WEIGHTS = REAL / "weights" / "vit_tiny_patch16_224.augreg_in21k_ft_in1k.safetensors"
pytestmark = pytest.mark.skipif(
    not WEIGHTS.exists(),
    reason="set VISPROMPT_REAL to a folder with weights/ and vtab1k_style/ to try real images",
)


@pytest.fixture(scope="module")
def backbone():
    return vp.load_backbone("vit_tiny_patch16_224.augreg_in21k_ft_in1k", WEIGHTS)


@pytest.fixture(scope="module")
def smaller(backbone):
    """For what is trained: a quarter of the patches, at a fifth of the time."""
    return resized(backbone, 112)


def test_published_weights_load_whole(backbone):
    assert sum(p.numel() for p in backbone.model.parameters()) == 5_717_416
    assert backbone.mean == (0.5,) * 3  # what these weights were trained with
    with pytest.raises(vp.BadInput, match="of another architecture"):
        vp.load_backbone("vit_small_patch16_224", WEIGHTS)


def test_linear_probe_and_ap_on_real_textures(smaller):
    """Few images and epochs, so the floor is low; chance is a tenth. A linear probe on all reaches
    about 87 %."""
    task = vp.load_task("dtd10", data_dir=REAL / "vtab1k_style", train_size=200, image_size=112)
    small = type(task)(
        task.name,
        task.class_names,
        task.train,
        *(tuple(t[:100] for t in s) for s in (task.val, task.test)),
        task.resize,
    )
    for slug, settings in (("linear-probe", {}), ("ap", {"block": 10})):
        model = vp.build_method(slug, smaller, task.classes, **settings)
        values = vp.fit(model, small, Recipe(epochs=5, batch_size=50), seed=0)
        assert values["test"] > 55, slug


@pytest.mark.parametrize("slug", ["vpt-deep", "cdc", "ivpt"])
def test_keys_and_values_alone_are_enough_with_real_weights(backbone, slug):
    """The fast form against concatenation on real activations, whose sizes no random network
    has."""
    task = vp.load_task("dtd10", data_dir=REAL / "vtab1k_style", train_size=20, image_size=224)
    images = task.train[0].float() / 127.5 - 1
    logits = []
    for form in ("keys and values", "concatenate"):
        model = vp.build_method(slug, backbone, task.classes, prompt_tokens=20, form=form)
        with torch.no_grad():
            logits.append(model(images))
    assert torch.allclose(*logits, atol=1e-4)


@pytest.mark.parametrize("slug", ["spt-deep", "da-vpt"])
def test_methods_learn_real_textures(smaller, slug):
    task = vp.load_task("dtd10", data_dir=REAL / "vtab1k_style", train_size=100, image_size=112)
    small = type(task)(
        task.name,
        task.class_names,
        task.train,
        *(tuple(t[:40] for t in s) for s in (task.val, task.test)),
        task.resize,
    )
    values = vp.fit(
        vp.build_method(slug, smaller, task.classes), small, Recipe(epochs=5, batch_size=10), seed=0
    )
    # few images teach little; chance is a tenth
    assert values["loss"][-1] < values["loss"][0] and values["test"] > 20


@pytest.mark.parametrize(
    ("name", "classes", "counts"),
    [
        ("cifar100", 100, (800, 200, 5000)),
        ("caltech101", 102, (800, 200, 1500)),
        ("dtd10", 10, (400, 100, 700)),
        ("ucmerced", 21, (800, 200, 630)),
        ("gtsrb", 43, (800, 200, 1720)),
    ],
)
def test_real_tasks_come_in_by_their_lists(name, classes, counts):
    task = vp.load_task(name, data_dir=REAL / "vtab1k_style", image_size=16)
    splits = (task.train, task.val, task.test)
    assert task.classes == classes and tuple(len(labels) for _, labels in splits) == counts
    assert {int(label) for _, labels in splits for label in labels} == set(range(classes))


@pytest.mark.parametrize("name", ["gtsrb", "ucmerced"])
def test_a_run_on_kept_real_images_trains(backbone, name, tmp_path, monkeypatch):
    monkeypatch.setenv("VISPROMPT_CACHE", str(tmp_path))
    task = vp.load_task(name, data_dir=REAL / "vtab1k_style", train_size=100, image_size=224)
    assert isinstance(task.test[0], Stored)
    some = (tuple(t[::10] for t in split) for split in (task.val, task.test))
    small = type(task)(task.name, task.class_names, task.train, *some, task.resize)
    values = vp.fit(
        vp.build_method("linear-probe", backbone, task.classes),
        small,
        Recipe(epochs=5, batch_size=20),
        seed=0,
    )
    assert values["loss"][-1] < values["loss"][0] and values["test"] > 2 * 100 / task.classes
