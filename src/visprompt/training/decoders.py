"""Decoders for segmentation: SETR's progressive upsampling, and a linear head."""

import math
from dataclasses import dataclass

import torch
from torch import nn

from ..errors import BadInput, choose
from ..models.backbones import Backbone
from ..models.intermediates import grid
from .windows import resize

# of ViT-L, counted from 1; the last is the primary head's (DA-VPT Appendix B)
SETR_LAYERS, SETR_DEPTH = ((9, 12, 18, 24), 24)


@dataclass(frozen=True)
class Decoder:
    """Which head reads which blocks.

    Raises:
        BadInput: an unknown kind or an impossible value.
    """

    # SETR (Zheng et al., 2021), or "linear": a 1 x 1 convolution behind the backbone's last norm
    kind: str = "setr-pup"
    channels: int = 256  # of SETR-PUP's convolutions
    # counted from 1, the primary head's last; None: SETR_LAYERS' shares of the depth
    layers: tuple[int, ...] | None = None
    auxiliary: float = 0.4  # weight of each auxiliary head's loss; 0 leaves the heads out

    def __post_init__(self):
        choose("decoder", self.kind, ["setr-pup", "linear"])
        if self.channels < 1:
            raise BadInput(f"channels must be 1 or more, not {self.channels}.")
        if self.auxiliary < 0:
            raise BadInput(f"auxiliary must be 0 or more, not {self.auxiliary}.")

    def blocks(self, depth: int) -> list[int]:
        """The blocks that are read, from 0: the auxiliary heads' first, the primary head's last.

        Raises:
            BadInput: a layer that a backbone of that depth lacks.
        """
        layers = self.layers or tuple(
            max(1, round(layer * depth / SETR_DEPTH)) for layer in SETR_LAYERS
        )
        if self.kind == "linear":
            layers = layers[-1:] if self.layers else (depth,)
        if not all(1 <= layer <= depth for layer in layers):
            raise BadInput(
                f"layers must be of 1 to {depth}, the blocks of this backbone, not {list(layers)}."
            )
        return [layer - 1 for layer in (layers if self.auxiliary else layers[-1:])]


class UpHead(nn.Module):
    """LayerNorm, then stages of 3 x 3 convolution, BatchNorm, ReLU and upsampling; a classifier.

    Upsampling is bilinear. SETR-PUP's primary head doubles the resolution four times;
    MMSegmentation's auxiliary heads quadruple it twice. Both reach the image's size if a patch has
    16 pixels.
    """

    def __init__(self, width: int, channels: int, classes: int, stages: int, scale: int):
        super().__init__()
        self.norm, self.scale = nn.LayerNorm(width, eps=1e-6), scale
        widths = [width] + [channels] * stages
        self.convs = nn.ModuleList(
            nn.Conv2d(a, b, 3, padding=1, bias=False) for a, b in zip(widths, widths[1:])
        )
        self.norms = nn.ModuleList(nn.BatchNorm2d(channels) for _ in range(stages))
        self.classify = nn.Conv2d(channels, classes, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(B, D, h, w) -> logits (B, C, h * scale^stages, w * scale^stages)."""
        x = self.norm(x.movedim(1, -1)).movedim(-1, 1)
        for conv, norm in zip(self.convs, self.norms, strict=True):
            x = norm(conv(x)).relu()
            x = resize(x, tuple(side * self.scale for side in x.shape[-2:]))
        return self.classify(x)


class LinearHead(nn.Module):
    """One linear map per patch."""

    def __init__(self, width: int, classes: int):
        super().__init__()
        self.classify = nn.Conv2d(width, classes, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(B, D, h, w) -> logits (B, C, h, w)."""
        return self.classify(x)


def build_decoder(decoder: Decoder, backbone: Backbone, classes: int) -> nn.ModuleList:
    """The heads on a ViT, one per entry of `Decoder.blocks`, primary last; see `reset_decoder`."""
    grid(backbone)
    blocks = decoder.blocks(backbone.depth)
    if decoder.kind == "linear":
        return nn.ModuleList([LinearHead(backbone.width, classes)])
    doublings = max(1, math.ceil(math.log2(backbone.model.patch_embed.patch_size[0])))
    stages = [(math.ceil(doublings / 2), 4)] * (len(blocks) - 1) + [(doublings, 2)]
    return nn.ModuleList(
        UpHead(backbone.width, decoder.channels, classes, n, scale) for n, scale in stages
    )


def reset_decoder(heads: nn.ModuleList, generator: torch.Generator) -> None:
    """Initialise the heads, in place.

    Convolutions Kaiming normal (fan out), classifiers normal with standard deviation 0.01, norms at
    one and zero.
    """
    for module in heads.modules():
        if isinstance(module, (nn.BatchNorm2d, nn.LayerNorm)):
            module.reset_parameters()
        elif isinstance(module, nn.Conv2d):
            fan = module.out_channels * math.prod(module.kernel_size)
            spread = 0.01 if module.bias is not None else math.sqrt(2 / fan)
            with torch.no_grad():
                module.weight.copy_(torch.randn(module.weight.shape, generator=generator) * spread)
                if module.bias is not None:
                    module.bias.zero_()
