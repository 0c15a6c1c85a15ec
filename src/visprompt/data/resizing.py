"""The resize rules of released code, beside those of `tasks.load_task`."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch.nn import functional as F

from . import tasks
from .image_cache import Item, load_images
from .layouts import read_items, task_folder
from .pictures import _eight_bits, readable, shown
from .tasks import RESIZES, Task, embedded_tasks

# the centred square of the short side, bicubic (SPT, DA-VPT); bilinear without antialiasing, as
# TensorFlow resizes (VPT)
CENTRE, ALIASED = "direct-centre-bicubic", "direct-aliased"
RULES = (*RESIZES, CENTRE, ALIASED)


@dataclass(frozen=True)
class Squared:
    """A picture at its final size by one of the two rules, decoded when it is called."""

    picture: Path | Callable
    size: int
    rule: str

    @property
    def path(self) -> str:
        return str(getattr(self.picture, "path", self.picture))

    def __call__(self) -> Image.Image:
        if not isinstance(self.picture, Path):
            image = self.picture()
            image = image if isinstance(image, Image.Image) else Image.fromarray(image)
            return squared(image, self.size, self.rule, shown(self.path))
        where = f"image {shown(self.path)}"
        with readable(where), self.picture.open("rb") as file, Image.open(file) as opened:
            return squared(opened, self.size, self.rule, where)


def squared(image: Image.Image, size: int, rule: str, where: str) -> Image.Image:
    """A picture of size x size pixels by CENTRE or ALIASED."""
    image = _eight_bits(image, where)
    if rule == ALIASED:
        numbers = torch.from_numpy(np.array(image)).permute(2, 0, 1)[None]
        return Image.fromarray(aliased(numbers, size)[0].permute(1, 2, 0).numpy())
    wide, high = (max(size, round(side * size / min(image.size))) for side in image.size)
    left, top = (wide - size) // 2, (high - size) // 2
    # the part of the picture that the centre comes from, so that a long one is not made whole
    scale = image.width / wide, image.height / high
    box = tuple(
        place * scale[number % 2]
        for number, place in enumerate((left, top, left + size, top + size))
    )
    return image.resize((size, size), Image.BICUBIC, box=box)


def aliased(images: torch.Tensor, size: int) -> torch.Tensor:
    """uint8 (N, 3, H, W) -> (N, 3, size, size), bilinear between the four nearest pixels."""
    found = F.interpolate(images.float(), (size, size), mode="bilinear", antialias=False)
    return found.round().clamp(0, 255).to(torch.uint8)


def load_resized(
    name: str,
    data_dir: str | Path | None = None,
    train_size: int | None = None,
    *,
    image_size: int | None = None,
    resize: str = "direct",
) -> Task:
    """`tasks.load_task`, with CENTRE and ALIASED among the resize rules.

    Raises:
        BadInput: as `tasks.load_task`.
    """
    if resize not in (CENTRE, ALIASED):
        return tasks.load_task(name, data_dir, train_size, image_size=image_size, resize=resize)
    if name in embedded_tasks():
        return embedded(name, train_size, image_size, resize)
    size = image_size or 224
    place = task_folder(data_dir, name, embedded_tasks())
    names, parts = read_items(place)
    items: list[list[Item]] = [
        [(Squared(picture, size, resize), label, where) for picture, label, where in part]
        for part in parts
    ]
    splits = load_images(place.task, place.root, items, size, resize)
    splits[0] = tasks._take(name, splits[0], train_size)
    return Task(name, tuple(map(str, names)), *splits, resize=resize)  # type: ignore[misc, arg-type]


def embedded(name: str, train_size: int | None, image_size: int | None, resize: str) -> Task:
    """An embedded task, whose images are square."""
    if resize == CENTRE:
        task = tasks.load_task(
            name, None, train_size, image_size=image_size, resize="direct-bicubic"
        )
        return task if task.resize == "none" else replace(task, resize=resize)
    task = tasks.load_task(name, None, train_size)
    if image_size in (None, task.size):
        return task
    changed = {
        split: (aliased(getattr(task, split)[0], image_size), getattr(task, split)[1])
        for split in tasks.SPLITS
    }
    return replace(task, resize=resize, **changed)  # type: ignore[arg-type]
