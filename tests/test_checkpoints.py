"""Checkpoints in the forms that their authors publish, each written here from a small network."""

import argparse
import os

import pytest
import torch
from safetensors.torch import save_file

import visprompt as vp

MICRO = "vit_micro_patch4_24"


@pytest.fixture(scope="module")
def kept():
    return vp.load_backbone(MICRO, "pretrained")


def same(kept, path):
    assert vp.load_backbone(MICRO, path).fingerprint == kept.fingerprint


def encoder(kept):
    return {
        key: value for key, value in kept.model.state_dict().items() if not key.startswith("head.")
    }


@pytest.mark.parametrize("whole", [False, True], ids=["encoder", "with the decoder"])
def test_maes_form(kept, tmp_path, whole):
    state = encoder(kept)
    if whole:
        state |= {"mask_token": torch.zeros(1, 1, 8), "decoder_pos_embed": torch.ones(1, 37, 8)}
        state |= {
            f"decoder_blocks.0.{name}": torch.ones(8) for name in ("norm1.weight", "norm1.bias")
        }
    content = {
        "model": state,
        "epoch": 3,
        "args": argparse.Namespace(lr=1),
        "optimizer": {"state": {}},
    }
    torch.save(content, tmp_path / "mae.pth")
    same(kept, tmp_path / "mae.pth")


def test_moco_v3s_form(kept, tmp_path):
    """The base encoder is taken, not the momentum encoder, whose values differ, nor the
    projectors."""
    state = {f"module.base_encoder.{key}": value for key, value in encoder(kept).items()}
    state |= {f"module.momentum_encoder.{key}": value + 1 for key, value in encoder(kept).items()}
    state |= {f"module.base_encoder.head.{n}.weight": torch.ones(4, 4) for n in (0, 3, 6)}
    state |= {"module.predictor.0.weight": torch.ones(4, 4)}
    torch.save({"epoch": 300, "arch": "vit_base", "state_dict": state}, tmp_path / "moco.pth.tar")
    same(kept, tmp_path / "moco.pth.tar")


def test_patches_as_a_linear_layer_and_safetensors(kept, tmp_path):
    """An older form that timm's filter knows: the patch embedding as a matrix."""
    state = encoder(kept)
    state["patch_embed.proj.weight"] = state["patch_embed.proj.weight"].flatten(1)
    save_file(
        {key: value.contiguous() for key, value in state.items()}, tmp_path / "old.safetensors"
    )
    same(kept, tmp_path / "old.safetensors")


def test_names_of_another_library_go_through_timms_filter(tmp_path, vit):
    """OpenCLIP's names of a ViT of timm's."""
    state = {f"visual.trunk.{key}": value for key, value in vit.model.state_dict().items()}
    from visprompt.models.checkpoints import timm_names

    found = timm_names(state, vit.model)
    assert set(vit.model.state_dict()) == set(found)
    assert all(torch.equal(value, found[key]) for key, value in vit.model.state_dict().items())


def test_a_filter_that_would_resize_does_not_hide_another_architecture(kept, tmp_path):
    """Neither another number of patches nor another patch size is resampled in silence."""
    for key, shape in (("pos_embed", (1, 50, 64)), ("patch_embed.proj.weight", (64, 3, 8, 8))):
        torch.save({"model": encoder(kept) | {key: torch.zeros(shape)}}, tmp_path / "w.pth")
        with pytest.raises(
            vp.BadInput,
            match=f"of another architecture than {MICRO}: 1 tensors differ, first '{key}'",
        ):
            vp.load_backbone(MICRO, tmp_path / "w.pth")


def test_a_network_of_another_form_is_refused(tmp_path, resnet, swin):
    for other in (resnet, swin):
        torch.save({"state_dict": other.model.state_dict()}, tmp_path / "w.pth")
        with pytest.raises(vp.BadInput, match="of another architecture"):
            vp.load_backbone(MICRO, tmp_path / "w.pth")


class Trap:
    """Runs a command when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


def test_a_pickle_runs_nothing(kept, tmp_path):
    torch.save({"model": encoder(kept), "trap": Trap(tmp_path / "ran")}, tmp_path / "w.pth")
    with pytest.raises(vp.BadInput, match="damaged, or more than weights"):
        vp.load_backbone(MICRO, tmp_path / "w.pth")
    assert not (tmp_path / "ran").exists()


def test_the_papers_checkpoints_are_timms():
    """Each is a name that timm has weights for, and that the block loop takes."""
    import timm

    from visprompt.models.embedded import published

    assert {"vit_base_patch16_224.orig_in21k", "vit_base_patch16_224.augreg_in21k"} <= set(
        published()
    )
    for name in published():
        assert name in timm.list_pretrained(name.split(".")[0] + ".*")
        assert vp.load_backbone(name, device="meta").image_size == 224
