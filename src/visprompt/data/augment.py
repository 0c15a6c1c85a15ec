"""Random resized crop and flip of whole batches of original images.

torchvision's transforms change one image at a time. Here all crops of a batch are cut, resized and
mirrored by two products with weight matrices, those of torch's antialiased resizing. The present
runs use `loop.crop_and_flip`.
"""

import math

import torch
from torch.nn.functional import interpolate

from ..errors import BadInput

# on a CPU, pixels of a side above which resizing one by one is faster than the two products
PRODUCTS = 64
SCALE, RATIO, TRIES = (0.08, 1.0), (3 / 4, 4 / 3), 10  # torchvision's RandomResizedCrop


def random_boxes(
    count: int, high: int, wide: int, generator: torch.Generator, scale=SCALE, ratio=RATIO
) -> torch.Tensor:
    """Boxes (B, 4) of top, left, height and width, drawn as in torchvision's RandomResizedCrop.

    Area share uniform in `scale`, aspect ratio log-uniform in `ratio`; after ten boxes that do not
    fit into high x wide, the centre.
    """
    area = (
        high
        * wide
        * torch.empty(count, TRIES, dtype=torch.float64).uniform_(*scale, generator=generator)
    )
    low, most = (math.log(r) for r in ratio)
    shape = (
        torch.empty(count, TRIES, dtype=torch.float64)
        .uniform_(low, most, generator=generator)
        .exp()
    )
    widths, heights = (area * shape).sqrt().round().long(), (area / shape).sqrt().round().long()
    fits = (widths > 0) & (widths <= wide) & (heights > 0) & (heights <= high)
    first, rows = fits.int().argmax(1), torch.arange(count)
    width, height = widths[rows, first], heights[rows, first]
    middle = wide, high
    if wide / high < ratio[0]:
        middle = wide, min(round(wide / ratio[0]), high)
    elif wide / high > ratio[1]:
        middle = min(round(high * ratio[1]), wide), high
    none = ~fits.any(1)
    width, height = (
        width.where(~none, torch.tensor(middle[0])),
        height.where(~none, torch.tensor(middle[1])),
    )
    draw = torch.rand(2, count, generator=generator, dtype=torch.float64)
    top, left = (draw[0] * (high - height + 1)).long(), (draw[1] * (wide - width + 1)).long()
    top, left = top.where(~none, (high - height) // 2), left.where(~none, (wide - width) // 2)
    return torch.stack([top, left, height, width], 1)


def weights(start: torch.Tensor, length: torch.Tensor, side: int, size: int) -> torch.Tensor:
    """Weights (B, size, side) that resize crops, `start` (B,) to start + length (B,), to `size`.

    Bilinear with antialias=True: a crop larger than `size` averages over a wider neighbourhood.
    """
    step = (length.double() / size)[:, None]
    reach = step.clamp_min(1)
    # (B, size), in pixels of the piece
    middle = step * (torch.arange(size, device=start.device) + 0.5)
    first = (middle - reach + 0.5).long().clamp_min(0)
    last = torch.minimum((middle + reach + 0.5).long(), length[:, None])
    pixel = torch.arange(side, device=start.device) - start[:, None]  # (B, side)
    distance = (pixel[:, None] - middle[..., None] + 0.5) / reach[..., None]
    weight = (1 - distance.abs()).clamp_min(0)
    inside = (pixel[:, None] >= first[..., None]) & (pixel[:, None] < last[..., None])
    weight = weight * inside
    return (weight / weight.sum(-1, keepdim=True)).float()


def crop_resize_flip(
    images: torch.Tensor, boxes: torch.Tensor, flips: torch.Tensor, size: int
) -> torch.Tensor:
    """Crops of images, resized, some of them mirrored.

    Args:
        images: (B, 3, H, W) uint8 or float, on any device.
        boxes: (B, 4) top, left, height and width of each crop.
        flips: (B,) bool.
        size: side of the result in pixels.

    Returns:
        (B, 3, size, size) of the same type. Bytes are rounded once, where torchvision rounds after
        each side: they differ by one at most. Large images on a CPU are resized one by one, bit for
        bit as in torchvision.

    Raises:
        BadInput: a box leaves its image, or there are not as many boxes and flips as images.
    """
    high, wide = images.shape[-2:]
    if boxes.shape != (len(images), 4) or flips.shape != (len(images),):
        raise BadInput(
            f"{len(images)} images want as many boxes (B, 4) and flips (B,), not "
            f"{tuple(boxes.shape)}."
        )
    top, left, height, width = boxes.cpu().unbind(1)
    if not bool(
        (
            (top >= 0)
            & (left >= 0)
            & (height > 0)
            & (width > 0)
            & (top + height <= high)
            & (left + width <= wide)
        ).all()
    ):
        raise BadInput(
            f"a box leaves its image of {high} x {wide} pixels; give top, left, height and width."
        )
    flips = flips.to(images.device)[:, None, None]
    if images.device.type == "cpu" and max(high, wide, size) > PRODUCTS:
        cropped = images.new_empty(len(images), 3, size, size)
        for place, (y, x, h, w) in enumerate(boxes.tolist()):
            piece = images[place : place + 1, :, y : y + h, x : x + w]
            cropped[place] = interpolate(piece, (size, size), mode="bilinear", antialias=True)[0]
        return torch.where(flips[..., None], cropped.flip(-1), cropped)
    top, left, height, width = boxes.to(images.device).unbind(1)
    rows, columns = weights(top, height, high, size), weights(left, width, wide, size)
    columns = torch.where(flips, columns.flip(1), columns)  # mirrored: the last column comes first
    cropped = rows[:, None] @ images.float() @ columns[:, None].transpose(-1, -2)
    return cropped if images.is_floating_point() else cropped.round().clamp(0, 255).to(images.dtype)


def random_crop_and_flip(
    images: torch.Tensor, size: int, generator: torch.Generator
) -> torch.Tensor:
    """Random resized crop and flip: (B, 3, H, W) -> (B, 3, size, size)."""
    return crop_resize_flip(
        images, *boxes_and_flips(len(images), *images.shape[-2:], generator), size
    )


def boxes_and_flips(
    count: int, high: int, wide: int, generator: torch.Generator
) -> tuple[torch.Tensor, torch.Tensor]:
    """What `random_crop_and_flip` draws: boxes (B, 4), see `random_boxes`, and flips (B,) bool."""
    boxes = random_boxes(count, high, wide, generator)
    return boxes, torch.rand(count, generator=generator) < 0.5
