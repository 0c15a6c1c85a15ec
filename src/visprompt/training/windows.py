"""Logits for images of any size from a network of one size: whole image or sliding windows."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch.nn import functional as F

from ..errors import BadInput, choose

# of multi-scale inference in MMSegmentation, with each picture's mirror image
SCALES = (0.5, 0.75, 1.0, 1.25, 1.5, 1.75)
Network = Callable[[torch.Tensor], torch.Tensor]  # (B, 3, S, S) normalised -> (B, C, S, S)


@dataclass(frozen=True)
class Evaluation:
    """How a network of one size is applied to an image.

    Raises:
        BadInput: an impossible value.
    """

    mode: str = "slide"  # "whole" brings the picture to the network's square and the logits back
    stride: int = 341  # from window to window; SETR's for a window of 512
    scales: tuple[float, ...] = SCALES  # of multi-scale inference; single-scale is 1.0 alone
    flip: bool = True  # and the mirror image, in multi-scale inference alone

    def __post_init__(self):
        choose("mode of evaluation", self.mode, ["slide", "whole"])
        if self.stride < 1:
            raise BadInput(f"stride must be 1 pixel or more, not {self.stride}.")
        if not self.scales or min(self.scales) <= 0:
            raise BadInput(
                f"scales must be numbers above 0, such as {list(SCALES)}, not {list(self.scales)}."
            )


def starts(length: int, window: int, stride: int) -> list[int]:
    """First pixels of the windows along a side: every `stride`, the last one flush with the end."""
    count = max(-(-(length - window) // stride), 0) + 1
    return [max(min(number * stride, length - window), 0) for number in range(count)]


def slide(network: Network, pictures: torch.Tensor, size: int, stride: int) -> torch.Tensor:
    """Logits (B, C, H, W) of images (B, 3, H, W): the mean over the windows that cover a pixel.

    An image smaller than a window is padded at the bottom and right with zeros, the mean colour.

    Raises:
        BadInput: a stride above the window, which would skip pixels.
    """
    if stride > size:
        raise BadInput(f"stride must be at most the window, {size} pixels, not {stride}.")
    high, wide = pictures.shape[-2:]
    padded = F.pad(pictures, (0, max(size - wide, 0), 0, max(size - high, 0)))
    total, seen = 0.0, padded.new_zeros(padded.shape[-2:])
    for y in starts(padded.shape[-2], size, stride):
        for x in starts(padded.shape[-1], size, stride):
            logits = network(padded[..., y : y + size, x : x + size])
            if not isinstance(total, torch.Tensor):
                total = logits.new_zeros(*logits.shape[:2], *padded.shape[-2:])
            total[..., y : y + size, x : x + size] += logits
            seen[y : y + size, x : x + size] += 1
    return (total / seen)[..., :high, :wide]


def resize(x: torch.Tensor, size: Sequence[int]) -> torch.Tensor:
    """Bilinear resize, (B, C, H, W) -> (B, C, *size); unchanged at that size."""
    return (
        x
        if x.shape[-2:] == tuple(size)
        else F.interpolate(x, size, mode="bilinear", align_corners=False)
    )


def likely(
    network: Network,
    pictures: torch.Tensor,
    size: int,
    how: Evaluation,
    out: tuple[int, int] | None = None,
    many: bool = False,
) -> torch.Tensor:
    """Class probabilities (B, C, *out) of normalised images (B, 3, H, W).

    Args:
        size: side of the network's input in pixels.
        out: (height, width) of the result; None for that of the images.
        many: multi-scale inference: the mean of the probabilities over scales and mirror images.
    """
    high, wide = pictures.shape[-2:]
    scales = []
    for scale in how.scales if many else (1.0,):
        scaled = resize(pictures, (round(high * scale), round(wide * scale)))
        for flipped in (False, True) if many and how.flip else (False,):
            seen = scaled.flip(-1) if flipped else scaled
            if how.mode == "whole":
                logits = resize(network(resize(seen, (size, size))), seen.shape[-2:])
            else:
                logits = slide(network, seen, size, how.stride)
            logits = logits.flip(-1) if flipped else logits
            scales.append(resize(logits, out or (high, wide)).float().softmax(1))
    return torch.stack(scales).mean(0)
