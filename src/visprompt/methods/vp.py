"""VP: one learned perturbation of the input image, shared by all images.

AP Sec. 3, g(x, delta) = x + delta.
"""

from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional as F

from ..errors import BadInput, choose
from ..models.backbones import Backbone
from . import base


@dataclass(frozen=True)
class Settings:
    """Kind and size of the frame.

    `template` "additive" adds to the pixels, "resize" shrinks the image into the frame's hole.
    `padding` is the width of the frame in pixels; None trains every pixel.
    """

    template: str = "additive"  # the paper's choice "unless specified otherwise"
    padding: int | None = None  # a full image has the 150k values that AP's Section 3 names


class Method(base.Method):
    """Trains delta (3, H, W), zero outside the frame.

    It starts at zero, so training starts at the linear probe.
    """

    where: torch.Tensor  # indices of the frame's pixels

    def __init__(self, backbone: Backbone, settings: Settings, num_classes: int) -> None:
        super().__init__(backbone, settings, num_classes)
        choose("VP template", settings.template, ["additive", "resize"])
        size, padding = backbone.image_size, settings.padding
        if padding is not None and not 1 <= padding < size / 2:
            raise BadInput(
                f"VP padding must be 1 to {(size - 1) // 2} pixels on a {size}-pixel "
                f"image, not {padding}."
            )
        if settings.template == "resize" and padding is None:
            raise BadInput(
                "VP with template 'resize' needs padding, the width of the frame in pixels."
            )
        frame = torch.ones(3, size, size, dtype=torch.bool, device="cpu")
        if padding is not None:
            frame[:, padding:-padding, padding:-padding] = False
        where = frame.flatten().nonzero().squeeze(1)
        self.delta = nn.Parameter(torch.zeros(len(where)))  # only the frame's pixels are parameters
        self.register_buffer("where", where.to(self.delta.device), persistent=False)

    def reset(self, generator: torch.Generator) -> None:
        nn.init.zeros_(self.delta)

    def change_images(self, images: torch.Tensor) -> torch.Tensor:
        size = images.shape[-1]
        full = images.new_zeros(3 * size * size).index_copy(
            0, self.where, self.delta.to(images.dtype)
        )
        if self.settings.template == "resize":
            padding = self.settings.padding
            inner = size - 2 * padding
            small = F.interpolate(
                images, size=inner, mode="bilinear", antialias=True, align_corners=False
            )
            images = F.pad(small, [padding] * 4)
        return images + full.view(3, size, size)
