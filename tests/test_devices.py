"""What takes a device gives on the pretended card what it gives on the processor: insights, masks,
clocks, and the theory of the shallow ViT. No test asserts a time."""

from dataclasses import replace

import pytest
import torch
from conftest import tiny_task
from pretended_card import PretendedCard
from test_segmenter import task as masks  # noqa: F401 (a fixture)

import visprompt as vp
from visbook.studies import bench, insights, lab
from visbook.studies.case import Run
from visbook.studies.lab import Lab, LabSettings
from visbook.studies.stand_ins import narrow_backbone
from visbook.theory import pasted_images
from visbook.timing import clock, method_cost, pairs, start_times
from visprompt.data.tasks import load_task
from visprompt.methods import build_method
from visprompt.training import mask_loop
from visprompt.training.activations import SHARED
from visprompt.training.decoders import Decoder
from visprompt.training.loop import accuracy, fit_model
from visprompt.training.recipe import Recipe
from visprompt.training.segmentation_recipe import SegmentationRecipe
from visprompt.training.segmenter import build_segmenter
from visprompt.training.windows import Evaluation

NANO = "vit_nano_patch4_24"


@pytest.fixture(autouse=True)
def afresh(stores, monkeypatch):
    """No record of the other device is found, and tasks have few images."""

    def few(*given, **more):
        task = load_task(*given, **more)
        cut = {name: tuple(x[:40] for x in getattr(task, name)) for name in ("val", "test")}
        return replace(task, **cut)

    monkeypatch.setattr(lab, "load_task", few)
    SHARED.kept.clear()
    yield
    SHARED.kept.clear()


def alike(work, tmp_path, monkeypatch) -> None:
    """Hold what a function of a device gives there against the processor."""

    def values(device):
        SHARED.kept.clear()
        monkeypatch.setattr("visprompt.records.store.ROOT", tmp_path / device)
        return work(device)

    wanted = values("cpu")
    with PretendedCard():
        assert values("cuda") == wanted


def run_of(slug: str, **settings) -> Run:
    return Run(NANO, "digits", slug, settings=settings, train_size=40)


def on(device: str) -> Lab:
    return Lab(LabSettings(changes={"epochs": 1}, device=device))


INSIGHTS = {
    "noise": lambda d: insights.under_noise(run_of("vpt-deep"), on(d), levels=(0.0, 0.2)).values,
    "prompts": lambda d: insights.prompts_and_patches(run_of("spt-deep"), on(d), images=8).values,
    "attention": lambda d: (
        insights.attention_maps(run_of("da-vpt", prompt_tokens=4), on(d), pool=8).values
    ),
    "clustering": lambda d: sorted(
        insights.clustering_times(run_of("da-vpt", prompt_tokens=4), on(d)).values
    ),
}


@pytest.mark.parametrize("what", INSIGHTS)
def test_what_a_fitted_method_shows(what, tmp_path, monkeypatch):
    alike(INSIGHTS[what], tmp_path, monkeypatch)


@pytest.mark.parametrize("slug", ["vpt-deep", "spt-deep"])
def test_a_run_of_masks(masks, slug, tmp_path, monkeypatch):  # noqa: F811
    recipe = SegmentationRecipe(
        *(2, 8, 24),
        optimizer="adam",
        head_rate=0.03,
        decoder=Decoder("linear"),
        evaluation=Evaluation("slide", 24, (1.0,)),
    )

    def counts(device):
        backbone = vp.load_backbone(NANO, "pretrained", device=device)
        model = build_segmenter(slug, backbone, 5, recipe.decoder)
        return mask_loop.segment(model, masks, recipe, 0).values["counts"]

    alike(counts, tmp_path, monkeypatch)


def test_pasted_images(tmp_path, monkeypatch):
    small = pasted_images.Settings(train_size=40, steps=3, removed=0.5)
    alike(lambda device: pasted_images.accuracy(small, 0, device=device), tmp_path, monkeypatch)


def test_a_method_is_saved_on_a_card_and_loaded_on_the_processor(tmp_path):
    task = tiny_task(24)
    with PretendedCard():
        model = build_method("vpt-deep", vp.load_backbone(NANO, "pretrained", device="cuda"), 3)
        fit_model(model, task, Recipe(epochs=1, batch_size=12), 0)
        there = accuracy(model, *task.val)
        vp.save_method(model, tmp_path / "saved.safetensors")
        again = vp.load_method(tmp_path / "saved.safetensors", model.source)
        assert accuracy(again, *task.val) == there
    here = vp.load_method(tmp_path / "saved.safetensors", vp.load_backbone(NANO, "pretrained"))
    assert accuracy(here, *task.val) == there


CLOCKS = {
    "starts": lambda: start_times.time_starts(NANO, 8, 4, 1, "cuda")["seconds"],
    "cost": lambda: method_cost.speed_and_peak(NANO, "ap", 2, 1, "cuda", {}),
    "methods": lambda: pairs.methods_in_turns(
        NANO, {"ap": clock.Side("ap", cached=True)}, batch_size=2, repeats=1, device="cuda"
    ).values["ap"],
    "pair": lambda: pairs.pair_in_turns(
        *("a", NANO, bench.deep(2, precision="bf16"), bench.deep(2)),
        **{"batch_size": 2, "repeats": 1, "device": "cuda", "equal": True, "infer": True},
    ).values["first"],
    "rate": lambda: {"rate": bench.rate("cuda", 8, 1)},
    "shallow": lambda: bench.shallow_batched("cuda", 4),
}


@pytest.mark.parametrize("what", CLOCKS)
def test_a_clock(what, monkeypatch):
    monkeypatch.setattr(bench, "STEPS", 2)
    monkeypatch.setitem(bench.TRIALS, "cuda", 2)
    with PretendedCard():
        found = CLOCKS[what]()
    assert found and all(found.values())


def test_a_stand_in_of_a_rehearsal_is_on_its_device():
    with PretendedCard():
        model = build_method("ap", narrow_backbone("resnet101", device="cuda"), 3)
        size = model.source.image_size
        assert model(torch.ones(2, 3, size, size, device="cuda")).is_cuda
