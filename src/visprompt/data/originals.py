"""Original training pictures, for recipes that crop these and not the stored, resized ones."""

import os
import warnings
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
import torch
from PIL import Image

from ..errors import BadInput
from .augment import crop_resize_flip, random_crop_and_flip
from .image_cache import Item
from .layouts import read_items, task_folder
from .pictures import _eight_bits, reason
from .tasks import Task, balanced_order, embedded_tasks

RESIZED, PLACED = "crop the original and flip", "place in the original and flip"  # see `cropped`
WHOLE_CROPS = (RESIZED, PLACED)
SHARE = 7 / 8  # of the shorter side: 224 of 256


@dataclass(frozen=True)
class Originals:
    """Pictures of a split in their own sizes, decoded on access."""

    items: tuple[Item, ...]

    def __len__(self) -> int:
        return len(self.items)

    def of(self, index: Iterable[int]) -> list[torch.Tensor]:
        """Pictures (3, H, W) uint8 at these indices.

        Raises:
            BadInput: a picture is ambiguous or unreadable.
        """
        with ThreadPoolExecutor(min(8, os.cpu_count() or 1)) as pool:
            return list(
                pool.map(
                    lambda place: whole_picture(self.items[place]), [int(place) for place in index]
                )
            )


def whole_picture(item: Item) -> torch.Tensor:
    """A picture in its own size, (3, H, W) uint8."""
    picture, _, where = item
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            image = Image.open(picture) if isinstance(picture, Path) else picture()
            image = image if isinstance(image, Image.Image) else Image.fromarray(image)
            return torch.from_numpy(np.array(_eight_bits(image, where)).transpose(2, 0, 1).copy())
    except (OSError, ValueError, KeyError, IndexError) as error:
        if isinstance(error, BadInput):
            raise
        raise BadInput(
            f"{where}: an original picture cannot be read ({reason(error)}); fetch the "
            f"data set again."
        ) from error


def with_originals(
    task: Task, how: str, data_dir=None, splits: Sequence[int] = (0,), train_size: int | None = None
) -> Task:
    """The task with training images that can be cropped from the original files.

    The images of an embedded task are the originals.

    Args:
        how: RESIZED or PLACED, see `cropped`.
        splits: 0, or 0 and 1 if train and val are joined.
        train_size: as given to `load_task`.
    """
    if task.name in embedded_tasks():
        return replace(task, train=(Known(task.train[0], Stack(task.train[0]), how), task.train[1]))  # type: ignore[arg-type]
    _, parts = read_items(task_folder(data_dir, task.name, embedded_tasks()))
    items = [item for split in splits for item in parts[split]]
    if train_size is not None:
        order = balanced_order(torch.tensor([label for _, label, _ in items]))[:train_size]
        items = [items[place] for place in order]
    return replace(task, train=(Known(task.train[0], Originals(tuple(items)), how), task.train[1]))  # type: ignore[arg-type]


@dataclass(frozen=True, eq=False)
class Stack:
    """Images (N, 3, S, S) that are their own originals."""

    images: torch.Tensor

    def of(self, index) -> list[torch.Tensor]:
        """Images (3, S, S) at these indices."""
        return list(self.images[torch.as_tensor(index)].cpu())


class Known:
    """Images (N, 3, S, S) whose batches can be cropped from the original files; else as before.

    `loop.crop_and_flip` calls a batch's `cropped`, a function of a generator.
    """

    def __init__(self, images, originals: Originals | Stack, how: str):
        self.images, self.originals, self.how = images, originals, how

    def __getattr__(self, name: str):
        if name in ("images", "originals", "how"):  # not set yet, as in a copy
            raise AttributeError(name)
        return getattr(self.images, name)

    def __len__(self) -> int:
        return len(self.images)

    def to(self, *where, **more) -> "Known":
        """The same on another device; the originals stay on disk."""
        return Known(self.images.to(*where, **more), self.originals, self.how)

    def __getitem__(self, index) -> torch.Tensor:
        batch = self.images[index]
        if isinstance(index, torch.Tensor):
            batch.cropped = partial(self.crops, index)
        return batch

    def crops(self, index: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
        """Random crops (B, 3, S, S) uint8 of the originals at these indices (B,)."""
        return cropped(self.originals.of(index.cpu()), self.how, self.images.shape[-1], generator)


def cropped(
    images: Sequence[torch.Tensor], how: str, size: int, generator: torch.Generator
) -> torch.Tensor:
    """Random crops of originals (3, H, W), half of them mirrored: (B, 3, size, size) uint8.

    Args:
        how: RESIZED crops a random area and aspect ratio (torchvision's RandomResizedCrop), PLACED
            a square of 7/8 of the shorter side at a random position (224 of 256 pixels).
    """
    pieces = images[0].new_empty(len(images), 3, size, size)
    for shape in dict.fromkeys(tuple(image.shape) for image in images):
        places = [place for place, image in enumerate(images) if tuple(image.shape) == shape]
        stack = torch.stack([images[place] for place in places])
        pieces[places] = (random_crop_and_flip if how == RESIZED else placed)(
            stack, size, generator
        )
    return pieces


def placed(images: torch.Tensor, size: int, generator: torch.Generator) -> torch.Tensor:
    """Random squares of 7/8 of the shorter side of (B, 3, H, W), resized, half of them mirrored."""
    high, wide = images.shape[-2:]
    side = max(1, round(SHARE * min(high, wide)))
    draw = torch.rand(3, len(images), generator=generator)
    top, left = (draw[0] * (high - side + 1)).long(), (draw[1] * (wide - side + 1)).long()
    boxes = torch.stack([top, left, torch.full_like(top, side), torch.full_like(top, side)], 1)
    return crop_resize_flip(images, boxes, draw[2] < 0.5, size)
