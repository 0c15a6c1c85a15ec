"""The library and the book on a pretended card: the processor's bits, and what a card refuses is
refused."""

import dataclasses

import pytest
import torch
from conftest import tiny_task
from pretended_card import DeviceError, PretendedCard

from visprompt.methods import build_method
from visprompt.models.backbones import load_backbone
from visprompt.training.loop import SHARED, fit_model
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
    ("vit_nano_patch4_24", "vpt-deep", {}),
    ("vit_nano_patch4_24", "spt-deep", {}),
    ("vit_nano_patch4_24", "da-vpt", {}),
    ("vit_nano_patch4_24", "ivpt", {}),
    ("vit_nano_patch4_24", "e2vpt", {}),
    ("vit_nano_patch4_24", "ap", {}),
    ("vit_nano_patch4_24", "vp", {"augmentation": "crop and flip"}),
    ("swin_micro_patch3_24", "vpt-deep", {}),
    ("resnet_micro_24", "norm-tune", {}),
    ("resnet_micro_24", "ap", {}),
]


@pytest.mark.parametrize(("backbone", "method", "more"), FITS)
def test_a_whole_fit_on_a_card_has_the_processors_bits(backbone, method, more):
    task = dataclasses.replace(tiny_task(24, per_split=(40, 20, 20)))

    def values(device):
        SHARED.kept.clear()
        model = build_method(method, load_backbone(backbone, device=device), task.classes)
        found = fit_model(model, task, Recipe(epochs=2, batch_size=16, **more), 0)
        return {name: value for name, value in found.items() if name != "fit_seconds"}

    wanted = values("cpu")
    with PretendedCard():
        assert values("cuda") == wanted
    SHARED.kept.clear()
