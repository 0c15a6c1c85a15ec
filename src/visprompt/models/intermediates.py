"""Outputs of single blocks by name, and frozen ViTs for images of another size."""

import copy

import torch
from timm.models.vision_transformer import VisionTransformer

from ..errors import BadInput
from ..records import watching
from .backbones import Backbone, fingerprint_weights
from .blocks import Hooks


class Leaving(Hooks):
    """Wraps a method's hooks and keeps the outputs of chosen blocks: `left`, index -> (B, N, D).

    The last block computes all its tokens, since a dense head reads them.
    """

    trims = False

    def __init__(self, method: Hooks, wanted):
        self.method, self.wanted, self.left = method, set(wanted), {}

    def before_block(self, index, x):
        return self.method.before_block(index, x)

    def around(self, index, name, layer, x):
        x = self.method.around(index, name, layer, x)
        if name == "block" and index in self.wanted:
            self.left[index] = x
        return x

    def extra(self, index, project):
        return self.method.extra(index, project)

    def observe(self, index, q, k):
        self.method.observe(index, q, k)

    def watches(self, index):
        return self.method.watches(index)

    def watch(self, index, x):
        self.method.watch(index, x)


def grid(backbone: Backbone) -> tuple[int, int]:
    """Numbers of rows and columns of patches.

    Raises:
        BadInput: the backbone is no ViT.
    """
    if not backbone.is_vit:
        raise BadInput(
            f"segmentation reads the patches of a ViT; {backbone.name} is a {backbone.family}."
        )
    return backbone.model.patch_embed.grid_size


def as_map(tokens: torch.Tensor, rows: int, columns: int) -> torch.Tensor:
    """Tokens (B, N, D) -> map (B, D, rows, columns) of the patches, which are the last tokens."""
    return tokens[:, -rows * columns :].transpose(1, 2).unflatten(2, (rows, columns))


def resized(backbone: Backbone, size: int) -> Backbone:
    """A frozen ViT for images of size x size pixels: positions interpolated as timm does (bicubic).

    Raises:
        BadInput: not a ViT, or its patches do not fit into that size.
    """
    grid(backbone)
    if size == backbone.image_size:
        return backbone
    model = backbone.model
    patch = model.patch_embed.patch_size[0]
    if size < patch or size % patch:
        near = max(patch, round(size / patch) * patch)
        raise BadInput(
            f"{backbone.name} has patches of {patch} pixels, which do not fill {size}; give {near}."
        )
    with watching() as seen:
        model = copy.deepcopy(model)
        VisionTransformer.set_input_size(model, img_size=(size, size))
        other = Backbone(model, backbone.name, size, backbone.mean, backbone.std)
    seen.add(backbone.made_by)
    other.made_by, other.architecture = seen, backbone.architecture
    if backbone.drawn is not None:
        other.drawn = backbone.drawn[0], fingerprint_weights(other)
    return other
