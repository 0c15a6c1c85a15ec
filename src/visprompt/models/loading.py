"""Backbones as the papers take them: pooling and statistics that differ from what timm has for the checkpoint."""

from pathlib import Path

import torch

from ..errors import choose
from ..records import watching
from . import backbones, embedded
from .backbones import Backbone

STATISTICS = {  # mean and standard deviation of the channels; "checkpoint": those that timm has for the weights
    "checkpoint": None,
    "imagenet": ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)),
    "half": ((0.5, 0.5, 0.5), (0.5, 0.5, 0.5)),
}


def load_backbone(
    name: str,
    weights: str | Path | None = None,
    *,
    device: str | torch.device = "cpu",
    statistics: str = "checkpoint",
) -> Backbone:
    """Load a frozen backbone; see `backbones.load_backbone`.

    Where `data_manifests/backbones.yaml` says "pooling: patches" (masked autoencoders), the features are the mean of the
    patches behind the last norm, as in the papers; timm's entry pools a class token that no loss has trained.

    Args:
        statistics: "checkpoint", "imagenet" or "half"; an embedded network keeps its own.

    Raises:
        BadInput: as there, or unknown statistics.
    """
    chosen = STATISTICS[choose("statistics", statistics, STATISTICS)]
    backbone = backbones.load_backbone(name, weights, device=device)
    if name not in embedded.networks() and chosen is not None:
        backbone.mean, backbone.std = chosen
    if embedded.published().get(name, {}).get("pooling") == "patches":
        with watching() as seen:
            pool_patches(backbone)
        backbone.made_by.add(seen)
    return backbone


def pool_patches(backbone: Backbone) -> None:
    """Let a ViT pool the mean of its patches behind the last norm."""
    backbone.model.global_pool = "avg"
    backbone.pools_class_token = False
    backbone.architecture = {"pooling": "mean of the patches"}
