"""Intermediates of the one block loop, decoders and their counts, and every method in a
segmenter."""

import pytest
import torch
from torch.nn import functional as F

from visbook.studies import grids
from visbook.studies.mask_runs import MaskLab, content, mask_scope, runs
from visprompt import records
from visprompt.chance import stream
from visprompt.data.mask_tasks import SegmentationTask, load_segmentation, stack
from visprompt.data.scenes import CLASSES, IGNORED, scenes
from visprompt.errors import BadInput
from visprompt.methods import METHODS, dense
from visprompt.methods.da_vpt import proxy_anchor
from visprompt.models.backbones import load_backbone
from visprompt.models.intermediates import resized
from visprompt.training import mask_loop
from visprompt.training.decoders import Decoder, UpHead, build_decoder
from visprompt.training.segmentation_recipe import (
    SegmentationRecipe,
    load_segmentation_recipe,
    recipes,
)
from visprompt.training.segmenter import build_segmenter, count_trained
from visprompt.training.windows import Evaluation

MICRO = "vit_micro_patch4_24"


@pytest.fixture(scope="module")
def backbone():
    return load_backbone(MICRO, "pretrained")


@pytest.fixture(scope="module")
def task():
    parts = [stack(*scenes("scenes_shape", n, 30, i)) for i, n in enumerate((24, 8, 8))]
    return SegmentationTask("scenes_shape", CLASSES["scenes_shape"], *parts)


def pictures(count=3, size=24):
    return torch.randn(count, 3, size, size, generator=torch.Generator().manual_seed(0))


def test_what_leaves_a_block_is_what_timm_gives(backbone):
    model = build_segmenter("linear-probe", backbone, 5, Decoder(channels=8))
    maps = model.maps(pictures())
    every = backbone.model.forward_intermediates(
        pictures(), indices=model.blocks, norm=False, intermediates_only=True
    )
    assert model.blocks == [2, 3, 5, 7]
    for mine, its in zip(maps, every, strict=True):
        assert torch.allclose(mine, its, atol=1e-5)
    linear = build_segmenter("linear-probe", backbone, 5, Decoder("linear"))
    last = backbone.model.forward_intermediates(
        pictures(), indices=[7], norm=True, intermediates_only=True
    )[0]
    assert torch.allclose(linear.maps(pictures())[0], last, atol=1e-5)


def test_prompts_that_travel_are_not_taken_for_patches(backbone):
    """VPT-Shallow's prompts stand between class token and patches; timm runs the same sequence."""
    model = build_segmenter("vpt-shallow", backbone, 5, Decoder(channels=8), prompt_tokens=7)
    x = backbone.stem(pictures())
    x = torch.cat([x[:, :1], model.method.prompts.expand(3, -1, -1), x[:, 1:]], 1)
    for number, block in enumerate(backbone.blocks):
        x = block(x)
        if number == model.blocks[0]:
            first = x[:, 8:].transpose(1, 2).reshape(3, -1, 6, 6)
    found = model.maps(pictures())
    assert torch.allclose(found[0], first, atol=1e-5)
    assert torch.allclose(found[-1], x[:, 8:].transpose(1, 2).reshape(3, -1, 6, 6), atol=1e-5)


@pytest.mark.parametrize("slug", METHODS)
def test_every_method_takes_a_step_in_a_segmenter(backbone, task, slug):
    decoder = Decoder("linear")
    recipe = SegmentationRecipe(
        2, 8, 24, learning_rate=0.01, optimizer="adam", decoder=decoder, seen_first=8
    )
    model = build_segmenter(slug, backbone, 5, decoder)
    model.reset(0)
    mask_loop.prepare(model, task, recipe, stream(0, "preparation"))
    before = [parameter.detach().clone() for parameter in model.method_parameters()]
    losses = mask_loop.train_segmenter(model, task.train, recipe, stream(0, "order"))
    assert all(loss > 0 for loss in losses)
    moved = [
        not torch.equal(old, new)
        for old, new in zip(before, model.method_parameters(), strict=True)
    ]
    assert any(moved) == bool(before)
    assert model(pictures()).shape == (3, 5, 24, 24)


def test_setr_pups_parameters_follow_from_its_layers():
    """LayerNorm, convolutions without bias, two numbers a channel of BatchNorm, and the
    classifier."""

    def head(width, stages, classes, c=256):
        return (
            2 * width
            + 9 * width * c
            + (stages - 1) * 9 * c * c
            + stages * 2 * c
            + classes * (c + 1)
        )

    for name, width in (("vit_large_patch16_224", 1024), ("vit_base_patch16_224", 768)):
        backbone = load_backbone(name, device="meta")
        for classes in (150, 60):
            heads = build_decoder(Decoder(), backbone, classes)
            assert [sum(p.numel() for p in one.parameters()) for one in heads] == [
                head(width, 2, classes)
            ] * 3 + [head(width, 4, classes)]
            model = build_segmenter("vpt-deep", backbone, classes, prompt_tokens=10)
            assert count_trained(model)["method"] == 10 * width * backbone.depth
    assert Decoder(layers=(9, 12, 18, 24)).blocks(24) == [8, 11, 17, 23] == Decoder().blocks(24)
    assert Decoder().blocks(12) == [3, 5, 8, 11]


def test_the_up_head_grows_a_map_to_the_pictures_size(backbone):
    primary, others = UpHead(16, 8, 5, 4, 2), UpHead(16, 8, 5, 2, 4)
    assert (
        primary(torch.randn(2, 16, 3, 4)).shape
        == others(torch.randn(2, 16, 3, 4)).shape
        == (2, 5, 48, 64)
    )
    model = build_segmenter("linear-probe", backbone, 5, Decoder(channels=8))
    assert [logits.shape for logits in model.every(pictures())] == [(3, 5, 24, 24)] * 4


def test_the_loss_counts_auxiliary_heads_by_their_weight(backbone):
    masks = torch.randint(0, 5, (3, 24, 24), generator=torch.Generator().manual_seed(1))
    masks[:, :4] = IGNORED
    model = build_segmenter("linear-probe", backbone, 5, Decoder(channels=8))
    model.reset(0)
    parts = [
        F.cross_entropy(logits, masks, ignore_index=IGNORED) for logits in model.every(pictures())
    ]
    expected = parts[-1] + 0.4 * sum(parts[:-1])
    assert torch.allclose(model.training_loss(pictures(), masks, IGNORED), expected, atol=1e-5)
    assert (
        len(build_segmenter("linear-probe", backbone, 5, Decoder(channels=8, auxiliary=0.0)).heads)
        == 1
    )


def test_da_vpts_losses_take_each_patch_by_its_own_class(backbone):
    model = build_segmenter(
        "da-vpt", backbone, 5, Decoder("linear"), guided_tokens=3, projection="none"
    )
    model.reset(0)
    model.method.train()
    masks = torch.randint(
        0, 5, (3, 24, 24), generator=torch.Generator().manual_seed(2)
    ).repeat_interleave(1, 1)
    masks[0, :8] = IGNORED
    labels = dense.patch_labels(masks, 6, 6)
    features = model.maps(pictures())[0].flatten(2).transpose(1, 2)
    method, index = model.method, 7
    seen, proxies = (
        F.normalize(method.seen[index], dim=-1),
        F.normalize(method.prompts[index], dim=-1),
    )
    rows, tokens, there = [], [], []
    for image in range(3):
        tokens.append(seen[image, 0])
        there.append({int(label) for label in labels[image] if label != IGNORED})
        rows += [
            (seen[image, 1 + n], int(label))
            for n, label in enumerate(labels[image])
            if label != IGNORED
        ]
    patches, points = torch.stack([x for x, _ in rows]), torch.stack(tokens)
    mine = torch.tensor([[int(method.cluster[label]) == m for _, label in rows] for m in range(3)])
    any_of = torch.tensor(
        [[any(int(method.cluster[c]) == m for c in s) for s in there] for m in range(3)]
    )
    s = method.settings
    plain = s.beta * proxy_anchor(proxies @ patches.T, mine, s.margin, s.temperature)
    plain = plain + s.lambda_ * proxy_anchor(proxies @ points.T, any_of, s.margin, s.temperature)
    assert torch.allclose(dense.dense_loss(method, features, labels, IGNORED), plain, atol=1e-6)
    assert method.counts.sum() == len(rows)


def test_a_patch_has_the_most_frequent_label_of_its_pixels():
    masks = torch.tensor([[[0, 0, 1, 2], [0, 3, 2, 2], [255, 255, 4, 4], [255, 1, 4, 1]]])
    assert dense.patch_labels(masks, 2, 2).tolist() == [[0, 2, 255, 4]]


def test_a_resized_backbone_has_interpolated_positions_and_the_same_blocks(backbone):
    larger = resized(backbone, 48)
    assert larger.image_size == 48 and larger.model.pos_embed.shape == (1, 145, 64)
    assert backbone.image_size == 24 and backbone.model.pos_embed.shape == (1, 37, 64)
    assert larger.fingerprint != backbone.fingerprint
    assert larger(pictures(size=48)).shape == (3, 64)
    assert resized(backbone, 24) is backbone
    assert resized(load_backbone(MICRO), 48).fingerprint == "random, seed 0"
    assert build_segmenter("vpt-deep", larger, 5, Decoder("linear"))(pictures(size=48)).shape == (
        3,
        5,
        48,
        48,
    )


def test_a_run_is_recorded_and_found_again(backbone, task, tmp_path, monkeypatch):
    monkeypatch.setattr("visprompt.records.store.ROOT", tmp_path)
    small = Evaluation("slide", 24, (1.0,))
    decoder = Decoder("linear")
    recipe = SegmentationRecipe(
        3, 8, 24, optimizer="adam", head_rate=0.03, decoder=decoder, evaluation=small
    )
    model = build_segmenter("linear-probe", backbone, 5, decoder)
    done = mask_loop.segment(model, task, recipe, 0)
    values = done.values
    assert (
        done.kind == "segment"
        and mask_loop.segment(model, task, recipe, 0, run=False).id == done.id
    )
    counts = torch.tensor(values["counts"])
    assert counts.sum() == sum(int((mask != IGNORED).sum()) for _, mask in task.test)
    assert [len(text) for text in values["predicted"]] == [24 * 24] * 4
    assert (
        values["parameters"] == {"method": 0, "decoder": 65 * 5, "total": 65 * 5}
        and len(values["loss"]) == 3
    )
    with pytest.raises(
        BadInput, match="scenes_shape has 5 classes; build the segmenter with classes=5"
    ):
        mask_loop.segment(build_segmenter("linear-probe", backbone, 4, decoder), task, recipe)
    model.heads[-1].register_forward_hook(lambda module, given, out: 3 * out)
    other = mask_loop.segment(model, task, recipe, 0)
    assert other.key != done.key and other.values["loss"] != values["loss"]
    model = build_segmenter("linear-probe", backbone, 5, decoder)
    assert mask_loop.segment(model, task, recipe, 0, run=False).id == done.id
    model.training_loss = lambda *given: 2 * type(model).training_loss(model, *given)
    assert mask_loop.segment(model, task, recipe, 0, run=False) is None


def test_masks_go_through_the_lab_of_all_runs(stores, monkeypatch):
    """Searched on validation, done and found by the code that does it for classification."""
    decoder, small = Decoder("linear"), Evaluation("slide", 24, (1.0,))
    lab = MaskLab(changes={"iterations": 2, "decoder": decoder, "evaluation": small})
    parts = [stack(*scenes("scenes_shape", n, 30, i)) for i, n in enumerate((24, 8, 8))]
    lab.masks["scenes_shape"] = SegmentationTask("scenes_shape", CLASSES["scenes_shape"], *parts)
    monkeypatch.setattr(lab, "leave", lambda name: None)
    scope = mask_scope("quick", ["scenes_shape"], ["linear-probe"])
    done = runs(lab, scope, [0, 1])
    found = runs(lab, scope, [0, 1], compute=False)
    assert [record.id for record in done.record] == [record.id for record in found.record]
    tries = {trial.rate: lab.do(trial, compute=False) for trial in lab.trials(done.run[0])}
    assert len(tries) == 2 and len(records.all_records("segment")) == 3
    assert done.rate[0] == max(tries, key=lambda rate: tries[rate].values["val"])
    about = {"profile": "quick", "data": "embedded", "evidence": "trend"}
    assert done.record[0].about == about and done.record[0].kind == "segment"


def test_a_crop_is_of_one_size_and_keeps_picture_and_mask_together(backbone, monkeypatch):
    """A picture whose red tells its mask's label still does after scaling, cutting and
    mirroring."""
    labels = torch.arange(4).repeat_interleave(10).expand(30, 40).to(torch.uint8)
    picture = (labels * 60).expand(3, -1, -1).clone()
    recipe = SegmentationRecipe(1, 2, 24, augmentation="scale, crop, flip and colours")
    generator = torch.Generator().manual_seed(0)
    monkeypatch.setattr(mask_loop, "coloured", lambda picture, generator: picture)
    for _ in range(10):
        x, y = mask_loop.cut((picture, labels), recipe, backbone, generator)
        assert x.shape == (3, 24, 24) and y.shape == (24, 24)
        kept = y != IGNORED
        assert ((x[0].float() - 60 * y.float()).abs()[kept] <= 30).all()


def test_the_poly_schedule_falls_to_its_last_rate(backbone):
    recipe = SegmentationRecipe(
        10, 2, 24, learning_rate=0.001, head_rate=0.01, last_rate=0.0001, decoder=Decoder("linear")
    )
    model = build_segmenter("vpt-deep", backbone, 5, Decoder("linear"))
    optimizer, scheduler = mask_loop.optimizer_of(model, recipe)
    seen = []
    for _ in range(11):
        seen.append([group["lr"] for group in optimizer.param_groups])
        optimizer.step()
        scheduler.step()
    assert seen[0] == [0.01, 0.001] and seen[10] == pytest.approx([0.0001, 0.0001])
    assert seen[5] == pytest.approx([0.01 * 0.5**0.9, 0.001 * 0.5**0.9])


def test_recipes_are_the_papers():
    ade, pascal = (
        load_segmentation_recipe(name, "vpt-deep") for name in ("ade20k", "pascal_context")
    )
    assert (ade.iterations, ade.crop, ade.evaluation.stride) == (160_000, 512, 341)
    assert (pascal.iterations, pascal.crop, pascal.evaluation.stride) == (80_000, 480, 320)
    assert ade.decoder == pascal.decoder == Decoder(layers=(9, 12, 18, 24))
    assert all(entry["sources"] for entry in recipes().values())
    found = grids.cells("segmentation", mask_scope("paper"))
    assert {run.task for _, run, _ in found} == {"ade20k", "pascal_context"}
    narrow = mask_scope("quick", methods=["ivpt"], tasks=["scenes_shape"])
    assert len(grids.cells("segmentation", narrow)) == 2


@pytest.mark.refused
def test_what_cannot_be_is_refused_in_one_line(backbone):
    for bad in ({"kind": "setr"}, {"channels": 0}, {"auxiliary": -1.0}):
        with pytest.raises(BadInput):
            Decoder(**bad)
    with pytest.raises(BadInput, match="layers must be of 1 to 8"):
        build_segmenter("bias", backbone, 5, Decoder(layers=(3, 9)))
    for bad in (
        {"crop": 0},
        {"warmup": 1.0},
        {"optimizer": "sdg"},
        {"long_side": 5},
        {"iterations": 1.5},
    ):
        with pytest.raises(BadInput):
            SegmentationRecipe(**bad)
    with pytest.raises(BadInput, match="patches of 4 pixels, which do not fill 30; give 32"):
        resized(backbone, 30)
    with pytest.raises(BadInput, match="segmentation reads the patches of a ViT"):
        build_segmenter("linear-probe", load_backbone("resnet_micro_24"), 5)
    with pytest.raises(BadInput, match="Did you mean 'scenes_shape'"):
        load_segmentation("scenes_shapes")
    with pytest.raises(BadInput, match="no method vp in segmentation; there is linear-probe"):
        mask_scope("quick", methods=["vp"])
    with pytest.raises(BadInput, match="Did you mean 'ade20k'"):
        mask_scope("paper", tasks=["ade20"])


def test_drawn_scenes_are_the_same_every_time_and_as_the_manifest_says():
    first, again = scenes("scenes_fill", 5, 31), scenes("scenes_fill", 5, 31)
    assert all((a == b).all() for a, b in zip(first, again))
    assert not (scenes("scenes_fill", 5, 31, 1)[0] == first[0]).all()
    found, masks = scenes("scenes_shape", 60, 30)
    assert found.shape == (60, 24, 24, 3) and {*masks.ravel().tolist()} == {0, 1, 2, 3, 4, IGNORED}
    for (
        mask
    ) in masks:  # two objects, unlike each other, the second perhaps before most of the first
        assert 1 <= len({*mask.ravel().tolist()} - {0, IGNORED}) <= 2
    assert {*content()["profiles"]["quick"]["tasks"]} == {*CLASSES}
