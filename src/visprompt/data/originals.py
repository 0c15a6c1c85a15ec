"""The training pictures as they lie on the disk, for recipes whose crops are of the original and
not of what is stored."""

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
    """Pictures of a split in their own sizes, decoded when they are asked for."""

    items: tuple[Item, ...]

    def __len__(self) -> int:
        return len(self.items)

    def of(self, index: Iterable[int]) -> list[torch.Tensor]:
        """Pictures (3, H, W) uint8 by their places.

        Raises:
            BadInput: a picture cannot be read in one way.
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
    """The task, whose training images know their pictures on the disk; an embedded one's images are
    the originals.

    Args:
        how: RESIZED or PLACED, what a training step takes of a picture.
        splits: 0, or 0 and 1, where train and val are joined.
        train_size: as `load_task` took it.
    """
    if task.name in embedded_tasks():
        return replace(task, train=(Known(task.train[0], Stack(task.train[0]), how), task.train[1]))
    _, parts = read_items(task_folder(data_dir, task.name, embedded_tasks()))
    items = [item for split in splits for item in parts[split]]
    if train_size is not None:
        order = balanced_order(torch.tensor([label for _, label, _ in items]))[:train_size]
        items = [items[place] for place in order]
    return replace(task, train=(Known(task.train[0], Originals(tuple(items)), how), task.train[1]))


@dataclass(frozen=True, eq=False)
class Stack:
    """Images (N, 3, S, S) that are their own originals."""

    images: torch.Tensor

    def of(self, index) -> list[torch.Tensor]:
        """Images (3, S, S) by their places."""
        return list(self.images[torch.as_tensor(index)].cpu())


class Known:
    """Images (N, 3, S, S) of which a batch knows its originals; in all else they are what they
    were.

    `loop.crop_and_flip` asks a batch for `cropped`, a function of a generator.
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
        """The same on another device; the originals stay on the disk."""
        return Known(self.images.to(*where, **more), self.originals, self.how)

    def __getitem__(self, index) -> torch.Tensor:
        found = self.images[index]
        if isinstance(index, torch.Tensor):
            found.cropped = partial(self.crops, index)
        return found

    def crops(self, index: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
        """Pieces of the originals of a batch (B,): (B, 3, S, S) uint8."""
        return cropped(self.originals.of(index.cpu()), self.how, self.images.shape[-1], generator)


def cropped(
    images: Sequence[torch.Tensor], how: str, size: int, generator: torch.Generator
) -> torch.Tensor:
    """A piece of each original (3, H, W), resized, and its mirror image half of the time: (B, 3,
    size, size) uint8.

    Args:
        how: RESIZED takes a piece of random area and shape (torchvision's RandomResizedCrop),
            PLACED a square of 7/8 of the shorter side at a random place (a crop of 224 after a
            resize to 256).
    """
    found = images[0].new_empty(len(images), 3, size, size)
    for shape in dict.fromkeys(tuple(image.shape) for image in images):
        places = [place for place, image in enumerate(images) if tuple(image.shape) == shape]
        stack = torch.stack([images[place] for place in places])
        found[places] = (random_crop_and_flip if how == RESIZED else placed)(stack, size, generator)
    return found


def placed(images: torch.Tensor, size: int, generator: torch.Generator) -> torch.Tensor:
    """A square of 7/8 of the shorter side at a random place of each of (B, 3, H, W), resized and
    perhaps mirrored."""
    high, wide = images.shape[-2:]
    side = max(1, round(SHARE * min(high, wide)))
    draw = torch.rand(3, len(images), generator=generator)
    top, left = (draw[0] * (high - side + 1)).long(), (draw[1] * (wide - side + 1)).long()
    boxes = torch.stack([top, left, torch.full_like(top, side), torch.full_like(top, side)], 1)
    return crop_resize_flip(images, boxes, draw[2] < 0.5, size)
