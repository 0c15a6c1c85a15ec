"""Embedded backbones: the shipped files fit the builder and know the source as well as they say."""

import json
from dataclasses import asdict, replace

import numpy as np
import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file

import visprompt as vp
from visbook.pretraining import captions, knowledge, objectives, pretrain, steps
from visbook.studies.grids import scope_of
from visprompt.data import leaves
from visprompt.data.drawing import SIZE, SOURCE_CLASSES, draw
from visprompt.errors import BadInput
from visprompt.models.embedded import build_embedded, networks, weights_file

NAMES = sorted(networks())


def test_every_embedded_backbone_has_a_recipe():
    assert sorted(pretrain.RECIPES) == NAMES
    assert all(recipe.init in {"", *NAMES} for recipe in pretrain.RECIPES.values())
    with pytest.raises(BadInput, match="Did you mean 'vit_micro_patch4_24'"):
        build_embedded("vit_micro")
    with pytest.raises(BadInput, match="Allowed: resnet_micro_24, swin_micro_patch3_24, vit"):
        pretrain.pretrain("swin")


@pytest.mark.parametrize("name", NAMES)
def test_weights_fit_the_builder(name):
    model, state = build_embedded(name), load_file(weights_file(name))
    wanted = {k: v.shape for k, v in model.state_dict().items()}
    assert {k: v.shape for k, v in state.items()} == wanted
    assert all(v.isfinite().all() for v in state.values())
    assert all(
        v.dtype == torch.float32 for k, v in state.items() if not k.endswith("num_batches_tracked")
    )
    assert weights_file(name).stat().st_size < 5e6
    assert len(vp.load_backbone(name).blocks) >= 8
    images = torch.zeros(2, 3, 24, 24)
    assert model.eval()(images).shape == (2, SOURCE_CLASSES)
    assert build_embedded(name, 7).eval()(images).shape == (2, 7)


@pytest.mark.parametrize("name", NAMES)
def test_report_is_of_this_recipe(name):
    path = weights_file(name)
    report = json.loads(path.with_suffix(".json").read_text())
    recipe = asdict(pretrain.RECIPES[name])
    # older logs lack newer fields
    assert report["name"] == name and report["recipe"].items() <= recipe.items()
    later = recipe.keys() - report["recipe"].keys()
    assert all(
        recipe[key] in ("", 0)
        for key in later
        if key == "init" or key.endswith("epochs") and key != "few_epochs"
    )
    assert all(
        recipe[key] == (1e-6 if key == "mae_floor" else "source")
        for key in later & {"mae_floor", "pictures"}
    )
    with safe_open(path, "pt") as file:
        note = file.metadata()
    assert json.loads(note["recipe"]) == report["recipe"]
    entry = networks()[name]
    for key in ("source_accuracy", "probe_accuracy"):
        assert entry.get(key) == report.get(key)
    assert (
        entry["mean"] == [report["recipe"]["mean"]] * 3
        and entry["std"] == [report["recipe"]["std"]] * 3
    )
    losses = {}
    for row in report["curve"]:
        losses.setdefault(row["stage"], []).append(row["loss"])
    assert all(found[0] > 1.05 * found[-1] for found in losses.values())


@pytest.mark.parametrize("name", [name for name in NAMES if pretrain.RECIPES[name].epochs])
def test_source_accuracy_is_reached_on_new_pictures(name):
    """Fresh pictures, within 4 standard errors of a difference of two shares."""
    recipe, count = pretrain.RECIPES[name], 600
    model = build_embedded(name)
    model.load_state_dict(load_file(weights_file(name)), strict=False)
    images, labels = draw("source", count, seed=987)
    images, labels = torch.from_numpy(images.transpose(0, 3, 1, 2)), torch.from_numpy(labels)
    got = knowledge.accuracy(model, images, labels, recipe)
    stated = networks()[name]["source_accuracy"]
    error = np.sqrt(stated * (1 - stated) * (1 / count + 1 / recipe.held_out))
    assert abs(got - stated) < 4 * error
    # the quality that the chapters rely on; chance is below 0.01
    assert stated > 0.7 or "nano" in name


STAGES = [
    *(
        "vit_micro_patch4_24",
        "vit_micro_patch4_24.mae_leaves",
        "vit_micro_patch4_24.mocov3_leaves",
        "vit_micro_patch4_24.clip",
        "vit_nano_patch4_24",
    ),
    *("swin_micro_patch3_24", "resnet_micro_24"),
]


@pytest.mark.parametrize("name", STAGES)
def test_training_again_repeats(name, tmp_path):
    """Two tiny trainings give the same tensors, learn something, and write both files whole."""
    recipe = pretrain.RECIPES[name]
    epochs = {key: min(1, value) for key, value in asdict(recipe).items() if key.endswith("epochs")}
    tiny = replace(recipe, images=256, held_out=50, batch=64, **epochs)
    reports = [pretrain.pretrain(name, tiny, folder=tmp_path / str(i)) for i in range(2)]
    file = weights_file(name).name
    first, second = (load_file(tmp_path / str(i) / file) for i in range(2))
    assert all(torch.equal(first[k], second[k]) for k in first)
    assert reports[0]["probe_accuracy"] == reports[1]["probe_accuracy"]
    assert (reports[0]["source_accuracy"] is None) == (recipe.epochs == 0)
    labels = recipe.epochs or recipe.caption_epochs
    assert (
        {"few_labels_accuracy", "scratch_accuracy"} <= reports[0].keys()
        or labels
        and "scratch_accuracy" not in reports[0]
    )
    assert reports[0]["recipe"]["images"] == 256 and reports[0]["curve"][-1]["step"] == 4
    assert not list(tmp_path.rglob("*.part")) and len(list(tmp_path.rglob("*.json"))) == 2
    torch.manual_seed(0)
    start = build_embedded(name).state_dict()
    assert any(not torch.equal(start[k], first[k]) for k in first)


def test_painter_sees_only_what_is_not_hidden():
    """Changing hidden patches changes the target alone: the painted pixels stay as they are."""
    torch.manual_seed(0)
    painter = objectives.Painter(build_embedded("vit_micro_patch4_24"), 0.67).eval()
    assert painter.keep == 12
    seen = []
    painter.paint.register_forward_hook(lambda _, __, out: seen.append(out.detach()))
    images = torch.rand(1, 3, 24, 24)
    with torch.no_grad():
        for change in (0.0, 1.0):
            torch.manual_seed(1)
            hidden = torch.rand(1, 36).argsort(1)[0, painter.keep :]
            changed = images.clone()
            for patch in hidden.tolist():
                r, c = divmod(patch, 6)
                changed[..., 4 * r : 4 * r + 4, 4 * c : 4 * c + 4] += change
            torch.manual_seed(1)
            loss = painter(changed)
            assert loss > 0
    torch.testing.assert_close(seen[0], seen[1])


def test_a_painter_of_windows_sees_only_what_is_not_hidden():
    """Changing hidden patches changes the target alone: the painted pixels stay as they are."""
    torch.manual_seed(0)
    painter = objectives.WindowPainter(build_embedded("swin_micro_patch3_24"), 0.6).eval()
    assert (painter.squares, painter.hide) == (4, 10)
    seen = []
    painter.paint.register_forward_hook(lambda _, __, out: seen.append(out.detach()))
    images = torch.rand(1, 3, SIZE, SIZE)
    with torch.no_grad():
        # nothing, what is hidden, what is seen
        for where in (slice(0), slice(None, 10), slice(10, None)):
            torch.manual_seed(1)
            squares, changed = torch.rand(1, 16).argsort(1)[0, where], images.clone()
            for square in squares.tolist():
                r, c = divmod(square, 4)
                changed[..., 6 * r : 6 * r + 6, 6 * c : 6 * c + 6] += 1.0
            torch.manual_seed(1)
            assert painter(changed) > 0
    torch.testing.assert_close(seen[0], seen[1])
    assert (seen[0] - seen[2]).abs().max() > 0.01


def test_a_small_swin_is_timms_own_forward_pass():
    backbone = vp.load_backbone("swin_micro_patch3_24", "pretrained")
    images = torch.rand(2, 3, SIZE, SIZE)
    assert backbone.family == "swin" and backbone.depth == 10 and backbone.width == 160
    with torch.no_grad():
        wanted = objectives.pooled(backbone.model, images)
        torch.testing.assert_close(backbone.pool(backbone.run(backbone.stem(images))), wanted)


def test_clips_architecture_in_small():
    """A norm before the blocks, no bias of the patches, quick GELU; and so has the published one by
    the name of the plan."""
    for name in ("vit_micro_patch4_24.clip", scope_of("paper").backbones["ap-clip"]):
        model = vp.load_backbone(name, device="meta").model
        assert (
            isinstance(model.norm_pre, torch.nn.LayerNorm) and model.patch_embed.proj.bias is None
        )
        assert type(model.blocks[0].mlp.act).__name__ == "QuickGELU"


def test_captions_say_what_was_drawn():
    """Places and colours by hand: a white disc above and right on black, and its mirror image in
    red on blue."""
    grid = np.arange(SIZE) + 0.5
    disc = (np.hypot(grid[None] - 15, grid[:, None] - 9) < 4).astype(float)
    masks = np.stack([disc, disc[:, ::-1]])
    white = np.repeat(disc[..., None], 3, -1)
    red = np.stack([masks[1], 0 * masks[1], 1 - masks[1]], -1)
    said = captions.describe(np.uint8(255 * np.stack([white, red])), np.array([0, 5]), masks)
    words = [dict(zip(captions.PLACES, row, strict=True)) for row in said.tolist()]
    colours = [(captions.COLOURS[w["colour"]], captions.COLOURS[w["ground"]]) for w in words]
    assert colours == [("white", "black"), ("red", "blue")]
    assert [(w["row"], w["column"], w["size"]) for w in words] == [(0, 2, 0), (0, 0, 0)]
    assert [(w["shape"], w["fill"]) for w in words] == [(0, 0), (1, 1)]
    every = captions.describe(*draw("source", 500, seed=3, with_masks=True))
    assert (every >= 0).all() and (every.max(0) < [*captions.PLACES.values()]).all()


def test_captions_are_told_apart_by_the_symmetrised_loss_over_the_batch():
    """Against a plain loop over pairs; and a word that is left out changes nothing that is read."""
    torch.manual_seed(0)
    tower = captions.Captioned(build_embedded("vit_micro_patch4_24.clip")).eval()
    images = torch.rand(4, 3, SIZE, SIZE)
    said = torch.from_numpy(captions.describe(*draw("source", 4, seed=3, with_masks=True)))
    torch.manual_seed(5)
    loss = tower(images, said)
    torch.manual_seed(5)
    left_out = torch.rand(said.shape) < captions.UNSAID
    left_out[:, [place in ("shape", "fill") for place in captions.PLACES]] = False
    assert left_out.any()
    read = tower.text(torch.where(left_out, tower.unsaid, said))
    seen, read = tower.project(objectives.pooled(tower.vit, images)), tower.project_text(read)
    scores = [[torch.cosine_similarity(a, b, dim=0) / 0.07 for b in read] for a in seen]
    total = 0.0
    for lines in (scores, list(zip(*scores, strict=True))):
        for i, line in enumerate(lines):
            total += (torch.stack(list(line)).logsumexp(0) - line[i]) / 8
    torch.testing.assert_close(loss, total, rtol=1e-4, atol=1e-5)
    other = torch.where(left_out, (said + 1) % tower.unsaid, said)
    torch.manual_seed(5)
    torch.testing.assert_close(tower(images, other), loss)


def test_augmentation_moves_and_swaps_but_invents_nothing():
    torch.manual_seed(0)
    images = torch.randint(0, 256, (16, 3, 24, 24), dtype=torch.uint8)
    moved = steps.augment(images, 2)
    assert moved.shape == images.shape and not torch.equal(moved, images.float())
    for before, after in zip(images, moved, strict=True):
        sums = before.float()[:, 4:-4, 4:-4].sum((1, 2)).sort().values
        found = [
            torch.allclose(after[:, 4 + y : 20 + y, 4 + x : 20 + x].sum((1, 2)).sort().values, sums)
            for y in range(-2, 3)
            for x in range(-2, 3)
        ]
        assert any(found)
    kept = steps.augment(images, 0, swap=False)
    assert torch.equal(kept, images.float())  # captions name the colours


def test_normalised_painting_does_not_see_contrast_or_brightness():
    """What is wanted of a patch has mean 0 and variance 1, so another brightness and contrast want
    the same."""
    torch.manual_seed(0)
    painter = objectives.Painter(
        build_embedded("vit_micro_patch4_24"), 0.67, normalised=True
    ).eval()
    wanted = []
    original = torch.nn.functional.mse_loss
    try:
        objectives.F.mse_loss = lambda painted, want: wanted.append(want) or original(painted, want)
        images = torch.rand(2, 3, 24, 24)
        for picture in (images, 0.3 * images + 0.2):
            torch.manual_seed(1)
            painter(picture)
    finally:
        objectives.F.mse_loss = original
    torch.testing.assert_close(wanted[0], wanted[1], atol=2e-3, rtol=0)
    torch.testing.assert_close(
        wanted[0].mean(-1), torch.zeros(2, painter.patches - painter.keep), atol=1e-5, rtol=0
    )


def test_a_floor_below_the_variance_keeps_flat_patches_from_asking_for_their_grain():
    """What is wanted, against the formula by hand: grain of variance 0.004 stays below a third of
    what an edge asks for."""
    torch.manual_seed(0)
    painter = objectives.Painter(
        build_embedded("vit_micro_patch4_24"), 0.67, True, pretrain.LEAVES.mae_floor
    )
    images = 0.06 * torch.randn(1, 3, SIZE, SIZE)
    wanted = painter.wanted(images)
    patch = images[0, :, :4, 4:8].reshape(-1)
    torch.testing.assert_close(wanted[0, 1], (patch - patch.mean()) / (patch.var() + 0.01) ** 0.5)
    assert 0.4 < wanted.std() < 0.6
    painter.floor = 1e-6
    assert painter.wanted(images).std() > 0.98  # of 48 pixels, one less is free


def test_leaves_hide_what_lies_behind_them(monkeypatch):
    """With one colour for all that is in front, nothing behind is seen through it; and draws
    repeat, class by class."""
    monkeypatch.setattr(
        leaves, "contrast", lambda rng, others, tries=6: rng.random((len(others), 3))
    )
    monkeypatch.setattr(leaves, "finish", lambda rng, canvas: canvas)
    masks = []
    source_mask = leaves.source_mask
    monkeypatch.setattr(
        leaves, "source_mask", lambda *given: masks.append(source_mask(*given)) or masks[-1]
    )
    drawn = []
    for often in (0.0, 1.0):
        monkeypatch.setattr(leaves, "OFTEN", often)
        drawn.append(leaves.draw_leaves(200, 3)[0])
    assert np.array_equal(*masks)
    front = masks[0] == 1
    np.testing.assert_allclose(drawn[0][front], drawn[1][front], atol=1e-12)
    assert front.mean() > 0.05
    assert (np.abs(drawn[0] - drawn[1]).max(-1) > 0.05)[~front].mean() > 0.2
    monkeypatch.undo()
    (first, labels), (again, _), (other, _) = (
        leaves.draw_leaves(600, 3, stream) for stream in (0, 0, 1)
    )
    assert (
        np.array_equal(first, again)
        and not np.array_equal(first, other)
        and first.dtype == np.uint8
    )
    assert np.bincount(labels, minlength=SOURCE_CLASSES).min() == 5 and set(
        labels[:SOURCE_CLASSES]
    ) == {*range(SOURCE_CLASSES)}


def test_what_few_labels_make_of_a_network_leaves_it_as_it_was():
    """The better rate is the one that is better behind the labels, not on what is held out."""
    recipe = replace(pretrain.MASKED, few_labels=64, few_epochs=2, batch=32)
    images, labels = draw("source", 200, 1)
    data = torch.from_numpy(images.transpose(0, 3, 1, 2).copy()), torch.from_numpy(labels % 2)
    model = build_embedded("vit_nano_patch4_24", 2).requires_grad_(False)
    before = {key: value.clone() for key, value in model.state_dict().items()}
    answers = iter([0.5, 0.9, 0.7, 0.1])  # behind the labels and held out, for each of the rates
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(knowledge, "Student", lambda model, side_loss: Plain(model))
        patched.setattr(knowledge, "accuracy", lambda *given: next(answers))
        assert knowledge.few_labels_accuracy(model, data, data, recipe) == 0.1
    assert all(torch.equal(value, before[key]) for key, value in model.state_dict().items())


class Plain(torch.nn.Module):
    """A student of a network with another number of classes."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, images, labels):
        return torch.nn.functional.cross_entropy(self.model(images), labels)


def test_contrast_is_the_symmetrised_loss_over_the_batch():
    """Against a plain loop over pairs, and with keys that carry no gradient."""
    torch.manual_seed(0)
    contrast = objectives.Contrast(build_embedded("vit_micro_patch4_24"), 0.2, 0.9)
    parts = [torch.nn.functional.normalize(torch.randn(8, 128), dim=1) for _ in range(2)]
    answers = iter(parts)
    contrast.embed = lambda vit, project, images: next(answers)
    contrast.predict = torch.nn.Identity()
    loss = contrast(torch.rand(4, 3, 24, 24))
    keys, queries = parts
    total = 0.0
    for mine, other in ((queries[:4], keys[4:]), (queries[4:], keys[:4])):
        for i in range(4):
            scores = torch.stack([mine[i] @ other[j] / 0.2 for j in range(4)])
            total += 2 * 0.2 * -(scores[i] - scores.logsumexp(0)) / 4
    torch.testing.assert_close(loss, total)
    assert not any(p.requires_grad for p in contrast.slow.parameters())
    assert not contrast.vit.patch_embed.proj.weight.requires_grad


def test_views_keep_shape_and_differ():
    torch.manual_seed(0)
    images = torch.rand(8, 3, 24, 24)
    first, second = objectives.view(images), objectives.view(images)
    assert first.shape == images.shape and first.isfinite().all()
    assert not torch.allclose(first, second)
