"""Load backbones with the papers' pooling and normalisation, which may differ from timm's."""

import copy
import logging
import socket
import urllib.parse
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import nn

from ..checks import require
from ..errors import BadInput, choose
from ..records import watching
from . import backbones, embedded
from .backbones import ACCEPTED, FAMILIES, Backbone, fingerprint_weights
from .structure import changed, structure

# mean and standard deviation of the channels; "checkpoint": those that timm has for the weights
STATISTICS: dict[str, Any] = {
    "checkpoint": None,
    "imagenet": ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)),
    "half": ((0.5, 0.5, 0.5), (0.5, 0.5, 0.5)),
    "none": ((0.0, 0.0, 0.0), (1.0, 1.0, 1.0)),
}


def load_backbone(
    network: str | nn.Module,
    weights: str | Path | None = None,
    *,
    name: str | None = None,
    mean: Sequence[float] | None = None,
    std: Sequence[float] | None = None,
    device: str | torch.device = "cpu",
    statistics: str = "checkpoint",
    image_size: int | None = None,
) -> Backbone:
    """Load a frozen backbone.

    Masked autoencoders (`pooling: patches` in `data_manifests/backbones.yaml`) pool the mean of the
    patches after the last norm, as in the papers; timm's entry pools a class token that no loss has
    trained.

    Args:
        network: the name of a timm ViT, ResNet or Swin, or of an embedded one; or such a network of
            your own, which is copied.
        weights: None for random weights (seed 0); "pretrained" for the published ones (embedded:
            the project's own); or a .safetensors or .pth file with timm's key names. A network of
            your own has its weights already.
        name: of a network of your own, in records and saved methods.
        mean, std: the normalisation of pixels in [0, 1], one number a channel, if it is not the
            checkpoint's.
        device: "meta" gives shapes without weights, for counting.
        statistics: the normalisation by name: "checkpoint", "imagenet", "half" or "none", pixels
            from 0 to 1; an embedded network keeps its own.
        image_size: side of an image in pixels, if it is not the checkpoint's own; see
            `resize_positions`.

    Raises:
        BadInput: an unknown name, another family, a damaged file or one of another architecture, an
            image size that the backbone cannot take, or a device that this machine lacks.
    """
    chosen = STATISTICS[choose("statistics", statistics, STATISTICS)]
    if isinstance(network, nn.Module):
        backbone = of_network(network, weights, name).to(backbones.check_device(device))
        own = True
    else:
        if name is not None:
            raise BadInput("name is for a network of your own; leave it out beside timm's name.")
        with hub_asked_once(weights == "pretrained" and network not in embedded.networks()):
            backbone = backbones.load_backbone(network, weights, device=device)
        own = network in embedded.networks()
    given = None if own else chosen
    for field, value, channels in zip(("mean", "std"), (mean, std), given or (None, None)):
        value = channels if value is None else value
        if value is not None:
            require(f"the backbone's {field}", tuple(value), tuple[float, float, float])
            setattr(backbone, field, tuple(value))
    with watching() as seen:
        if not own and embedded.published().get(network, {}).get("pooling") == "patches":
            pool_patches(backbone)
        if hasattr(backbone.model, "dist_token"):
            pool_both_tokens(backbone)
        if image_size not in (None, backbone.image_size):
            resize_positions(backbone, image_size)
    backbone.made_by.add(seen)
    return backbone


def of_network(network: nn.Module, weights: object, name: str | None) -> Backbone:
    """A backbone of a copy of a timm network; its record states its structure by a digest."""
    if not isinstance(network, tuple(FAMILIES.values())):
        raise BadInput(
            f"a {type(network).__name__} is no backbone the block loop knows; give {ACCEPTED}, as "
            f"timm builds it. timm has the weights of Hugging Face's ViT, DINOv2 and CLIP towers."
        )
    if weights is not None:
        raise BadInput("a network has its weights already; leave weights out.")
    about: dict[str, Any] = getattr(network, "pretrained_cfg", None) or {}
    name = name or about.get("architecture")
    require("the name of a network of your own", name, str)
    model = copy.deepcopy(network)
    grid = getattr(getattr(model, "patch_embed", None), "img_size", None)
    size = grid or tuple(about.get("input_size", (3, 224, 224))[1:])
    if size[0] != size[1]:
        raise BadInput(f"{name} takes images of {size[1]}x{size[0]} pixels; give a square size.")
    half = STATISTICS["half"]
    with watching() as seen:
        mean, std = (about.get(key, value) for key, value in zip(("mean", "std"), half))
        backbone = Backbone(model, name, size[0], mean, std)  # type: ignore[arg-type]
    backbone.made_by = seen
    backbone.architecture = {"structure": changed({}, structure(backbone, backbones.NO_STRUCTURE))}
    return backbone


@contextmanager
def hub_asked_once(needed: bool = True) -> Iterator[None]:
    """Context in which weights come from the hub's cache alone if it is not reached at once.

    Its client tries for a minute otherwise, and says so at length.
    """
    from huggingface_hub import constants

    known, silenced = constants.HF_HUB_OFFLINE, logging.root.manager.disable
    address = urllib.parse.urlsplit(constants.ENDPOINT)
    if needed and not known and not urllib.request.getproxies():
        try:
            socket.create_connection((address.hostname, address.port or 443), timeout=4).close()
        except OSError:
            constants.HF_HUB_OFFLINE = True
    try:
        logging.disable(logging.CRITICAL if needed else silenced)
        yield
    finally:
        constants.HF_HUB_OFFLINE = known
        logging.disable(silenced)


def pool_both_tokens(backbone: Backbone) -> None:
    """Let a distilled DeiT pool the mean of its class and distillation token, as timm does."""
    backbone.model.pool = mean_of_two
    backbone.pools_class_token = False
    backbone.architecture |= {"pooling": "mean of class and distillation token"}
    backbone.note_structure()


def mean_of_two(x: torch.Tensor) -> torch.Tensor:
    """Tokens (B, N, D) -> the mean of the first two, (B, D)."""
    return x[:, :2].mean(1)


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
