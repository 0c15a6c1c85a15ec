"""Original training pictures, for recipes that crop these and not the stored, resized ones."""

import os
import warnings
from collections.abc import Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
import torch
from PIL import Image

from ..errors import BadInput
from .augment import boxes_and_flips, crop_resize_flip
from .image_cache import Item
from .layouts import read_items, task_folder
from .pictures import _eight_bits, reason
from .tasks import Task, balanced_order, embedded_tasks

RESIZED, PLACED = "crop the original and flip", "place in the original and flip"  # see `cropped`
WHOLE_CROPS = (RESIZED, PLACED)
SHARE = 7 / 8  # of the shorter side: 224 of 256
THREADS = min(8, os.cpu_count() or 1)


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
        with ThreadPoolExecutor(THREADS) as pool:
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

    `loop.crop_and_flip` calls a batch's `cropped`, a function of a generator. While a batch is
    trained on, the originals of the next one are read.
    """

    def __init__(self, images, originals: Originals | Stack, how: str):
        self.images, self.originals, self.how = images, originals, how
        self.ahead: tuple[list[int], Future] | None = None  # of a batch that was not asked for yet

    def __getattr__(self, name: str):
        if name in ("images", "originals", "how", "ahead"):  # not set yet, as in a copy
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
        wanted, ahead, self.ahead = index.tolist(), self.ahead, None
        read = ahead[1].result() if ahead and ahead[0] == wanted else self.originals.of(wanted)
        if following := after(index):
            reader = ThreadPoolExecutor(1)
            self.ahead = following, reader.submit(self.originals.of, following)
            reader.shutdown(wait=False)  # ends with what it reads
        return cropped(read, self.how, self.images.shape[-1], generator)


def after(index: torch.Tensor) -> list[int]:
    """The indices of the next batch, where this one is a piece of an epoch's order; else none."""
    whole = index._base
    if whole is None or whole.ndim != 1:
        return []
    end = index.storage_offset() - whole.storage_offset() + len(index)
    return whole[end : end + len(index)].tolist()


def cropped(
    images: Sequence[torch.Tensor], how: str, size: int, generator: torch.Generator
) -> torch.Tensor:
    """Random crops of originals (3, H, W), half of them mirrored: (B, 3, size, size) uint8.

    All are drawn first, then cut in threads.

    Args:
        how: RESIZED crops a random area and aspect ratio (torchvision's RandomResizedCrop), PLACED
            a square of 7/8 of the shorter side at a random position (224 of 256 pixels).
    """
    draw = boxes_and_flips if how == RESIZED else placed
    shapes = [tuple(image.shape) for image in images]
    alike = [
        [place for place, other in enumerate(shapes) if other == shape]
        for shape in dict.fromkeys(shapes)
    ]
    drawn = [draw(len(places), *shapes[places[0]][1:], generator) for places in alike]  # type: ignore[call-arg, arg-type]

    def cut(places, boxes_flips):
        return crop_resize_flip(
            torch.stack([images[place] for place in places]), *boxes_flips, size
        )

    pieces = images[0].new_empty(len(images), 3, size, size)
    with ThreadPoolExecutor(THREADS) as pool:
        for places, found in zip(alike, pool.map(cut, alike, drawn), strict=True):
            pieces[places] = found
    return pieces


def placed(
    count: int, high: int, wide: int, generator: torch.Generator
) -> tuple[torch.Tensor, torch.Tensor]:
    """Random squares of 7/8 of the shorter side: boxes (B, 4), and flips (B,) bool, half of them
    true."""
    side = max(1, round(SHARE * min(high, wide)))
    draw = torch.rand(3, count, generator=generator)
    top, left = (draw[0] * (high - side + 1)).long(), (draw[1] * (wide - side + 1)).long()
    squares = torch.stack([top, left, torch.full_like(top, side), torch.full_like(top, side)], 1)
    return squares, draw[2] < 0.5
