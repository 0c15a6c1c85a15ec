"""The library and the book on a pretended card: the processor's bits, and what a card refuses is
refused."""

import copy

import pytest
import torch
from conftest import tiny_task
from pretended_card import DeviceError, PretendedCard

from visbook.chapters.ap import vp_from_layer_0
from visbook.chapters.ap_layers import dissect
from visbook.studies.guidance import relations
from visbook.theory import shallow_training, shallow_vit
from visbook.timing.clock import Side, in_turns, sample_batch, training_step
from visprompt import records
from visprompt.measure.attention import prompt_attention
from visprompt.methods import build_method
from visprompt.training.activations import SHARED
from visprompt.training.loop import accuracy, fit_model
from visprompt.training.recipe import Recipe


@pytest.mark.refused
def test_what_a_card_refuses_is_refused():
    with PretendedCard():
        here, there = torch.ones(3), torch.ones(3, device="cuda")
        index, drawn = torch.tensor([0], device="cuda"), torch.Generator()
        for asked in (
            lambda: here + there,
            lambda: here[index],
            lambda: torch.where(there > 0, here, there),
            lambda: there.uniform_(generator=drawn),
            lambda: torch.randperm(3, device="cuda", generator=drawn),
            lambda: there.numpy(),
            lambda: there.pin_memory(),
        ):
            with pytest.raises(DeviceError):
                asked()
        assert (there[torch.tensor([0])] * 2 + 1).cpu().tolist() == [3]
        there.copy_(here * 2)
        assert there.sum().item() == 6


FITS = [
    ("vit", "vpt-deep", {}),
    ("vit", "spt-deep", {}),
    ("vit", "da-vpt", {"prompt_tokens": 2, "guided_tokens": 2}),
    ("vit", "ivpt", {}),
    ("vit", "e2vpt", {}),
    ("vit", "ap", {}),
    ("swin", "vpt-deep", {}),
    ("resnet", "ap", {}),
]


def on(device: str, backbone):
    """A copy of a small network on a device."""
    SHARED.kept.clear()
    return copy.deepcopy(backbone).to(device)


@pytest.mark.parametrize(("family", "method", "settings"), FITS)
def test_a_whole_fit_on_a_card_has_the_processors_bits(family, method, settings, request):
    backbone = request.getfixturevalue(family)
    task = tiny_task(backbone.image_size)

    def values(device):
        model = build_method(method, on(device, backbone), task.classes, **settings)
        found = fit_model(model, task, Recipe(epochs=1, batch_size=12), 0)
        found["again"] = accuracy(model, *task.val)
        return {name: value for name, value in found.items() if name != "fit_seconds"}

    wanted = values("cpu")
    with PretendedCard():
        assert values("cuda") == wanted
    SHARED.kept.clear()


def test_the_steps_of_an_epoch_do_not_wait_for_the_card(vit):
    """One wait an epoch, for its loss, and one a split that is evaluated; steps have none."""
    waits = []
    for batch_size in (24, 4):
        with PretendedCard() as card:
            model = build_method("vpt-deep", on("cuda", vit), 3)
            fit_model(model, tiny_task(), Recipe(epochs=1, batch_size=batch_size), 0)
            waits.append(sum(card.waits.values()))
    assert waits[0] == waits[1]


def test_crops_in_training_run_on_a_card(vit):
    recipe = Recipe(epochs=1, batch_size=12, augmentation="crop and flip", precision="bf16")
    with PretendedCard():
        found = fit_model(build_method("vp", on("cuda", vit), 3), tiny_task(), recipe, 0)
    assert found["loss"][0] > 0


def test_what_pages_show_is_the_same_on_a_card(vit, resnet):
    task, images = tiny_task(), torch.arange(2 * 3 * 32 * 32) % 251
    images = images.to(torch.uint8).view(2, 3, 32, 32)

    def shown(device):
        backbone = on(device, vit)
        pictures = [images[..., :16, :16], images]
        cut = dissect((backbone, on(device, resnet)), pictures, device)
        model = build_method("da-vpt", backbone, 3, prompt_tokens=2, guided_tokens=2)
        fit_model(model, task, Recipe(epochs=1, batch_size=12), 0)
        pixels = torch.ones(2, 3, 16, 16).to(device)
        looks = [part["class"].cpu().tolist() for part in prompt_attention(model, pixels)]
        return vp_from_layer_0(backbone), cut, relations(model, *task.test), looks

    wanted = shown("cpu")
    with PretendedCard():
        assert shown("cuda") == wanted


def test_the_shallow_vit_is_trained_on_a_card():
    small = {"neurons": 8, "tokens": 6, "test_size": 4, "batch": 2, "max_steps": 12}
    trials = [(shallow_vit.Settings(**small), seed) for seed in (0, 1)]
    wanted = shallow_training.run_trials(trials)
    with PretendedCard():
        assert shallow_training.run_trials(trials, device="cuda") == wanted


def test_methods_are_timed_on_a_card_and_records_name_it(vit):
    with PretendedCard():
        side = Side("vpt-deep", {"prompt_tokens": 2}, precision="bf16")
        step = training_step(
            side, side.build(backbone := on("cuda", vit)), *sample_batch(backbone, 2)
        )
        assert len(in_turns({"a": step}, 2, "cuda")["a"]["seconds"]) == 2
        assert records.hardware()["gpu"] and records.hardware()["deterministic"] is False
    assert "deterministic" not in records.hardware()
