"""Load backbones with the papers' pooling and normalisation, which may differ from timm's."""

from pathlib import Path

import torch

from ..errors import BadInput, choose
from ..records import watching
from . import backbones, embedded
from .backbones import Backbone, fingerprint_weights

# mean and standard deviation of the channels; "checkpoint": those that timm has for the weights
STATISTICS = {
    "checkpoint": None,
    "imagenet": ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)),
    "half": ((0.5, 0.5, 0.5), (0.5, 0.5, 0.5)),
    "none": ((0.0, 0.0, 0.0), (1.0, 1.0, 1.0)),
}


def load_backbone(
    name: str,
    weights: str | Path | None = None,
    *,
    device: str | torch.device = "cpu",
    statistics: str = "checkpoint",
    image_size: int | None = None,
) -> Backbone:
    """Load a frozen backbone.

    Where `data_manifests/backbones.yaml` says "pooling: patches" (masked autoencoders), the
    features are the mean of the patches after the last norm, as in the papers; timm's entry pools a
    class token that no loss has trained.

    Args:
        name, weights, device: see `backbones.load_backbone`.
        statistics: the normalisation: "checkpoint", "imagenet", "half", or "none", pixels from 0 to
            1; an embedded network keeps its own.
        image_size: side of an image in pixels, if it is not the checkpoint's own; see
            `resize_positions`.

    Raises:
        BadInput: as `backbones.load_backbone`, unknown statistics, or an image size that the
            backbone cannot take.
    """
    chosen = STATISTICS[choose("statistics", statistics, STATISTICS)]
    backbone = backbones.load_backbone(name, weights, device=device)
    if name not in embedded.networks() and chosen is not None:
        backbone.mean, backbone.std = chosen
    if embedded.published().get(name, {}).get("pooling") == "patches":
        with watching() as seen:
            pool_patches(backbone)
        backbone.made_by.add(seen)
    if image_size not in (None, backbone.image_size):
        with watching() as seen:
            resize_positions(backbone, image_size)
        backbone.made_by.add(seen)
    return backbone


def resize_positions(backbone: Backbone, image_size: int) -> None:
    """Let a ViT take images of another size, in place (position embedding interpolated, bicubic).

    It keeps its fingerprint until its weights change: the size is recorded apart from the weights,
    and interpolated bits differ between processors.

    Raises:
        BadInput: not a ViT, or the size is not a multiple of the patch.
    """
    if not backbone.is_vit:
        raise BadInput(
            f"{backbone.name} takes images of {backbone.image_size} pixels only; leave the "
            f"image size out."
        )
    patch = backbone.model.patch_embed.patch_size[0]
    if image_size < patch or image_size % patch:
        near = max(1, round(image_size / patch)) * patch
        raise BadInput(
            f"patches of {patch} pixels do not fill images of {image_size}; give {near}."
        )
    known = backbone.fingerprint
    backbone.model.set_input_size(img_size=image_size)
    backbone.image_size, backbone.found_shapes = image_size, None
    backbone.note_structure()
    backbone.drawn = known, fingerprint_weights(backbone)


def pool_patches(backbone: Backbone) -> None:
    """Let a ViT pool the mean of its patches after the last norm."""
    backbone.model.global_pool = "avg"
    backbone.pools_class_token = False
    backbone.architecture = {"pooling": "mean of the patches"}
    backbone.note_structure()
