"""Classification tasks: images and labels in three splits, embedded or from `folders`."""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, wraps
from numbers import Integral
from pathlib import Path

import numpy as np
import torch

from .. import paths
from ..checks import require
from ..errors import BadInput, choose
from ..manifests import Entries
from . import catalogue
from .folders import check_name, shown
from .layouts import read_folder, task_folder
from .stored import known_fingerprint
from .targets import pictures

Split = tuple[torch.Tensor, torch.Tensor]
SPLITS = ("train", "val", "test")
RESIZES = ("direct", "crop", "direct-bicubic", "crop-bicubic")
LARGEST = 1024  # pixels of a side: far above any backbone's, far below what no memory holds


@dataclass(frozen=True, eq=False)
class Task:
    """A classification task; a split is images (N, 3, S, S) uint8 and labels (N,) int64 from 0."""

    name: str
    class_names: tuple[str, ...]
    train: Split
    val: Split
    test: Split
    resize: str  # how pictures came to their size: "none" or one of RESIZES

    @property
    def classes(self) -> int:
        """Number of classes."""
        return len(self.class_names)

    @property
    def size(self) -> int:
        """Side of an image in pixels."""
        return self.train[0].shape[-1]

    @cached_property
    def fingerprint(self) -> str:
        """Twelve hex digits of name, shapes and bytes of all splits; see `seen_anew`."""
        splits = self.train, self.val, self.test
        if known := known_fingerprint(self.name, splits):
            return known
        digest = hashlib.sha256(self.name.encode())
        for images, labels in splits:
            digest.update(str(tuple(images.shape)).encode())
            for part in images.split(1000):
                digest.update(part.numpy().tobytes())
            digest.update(labels.numpy().tobytes())
        return digest.hexdigest()[:12]


def check_task(task: Task) -> None:
    """Check a task that was put together by hand.

    Raises:
        BadInput: another type or shape, no image, images of several sizes, or a label without a
            name.
    """
    check_name(task.name)
    require("a task's class_names", task.class_names, tuple[str, ...])
    from .resizing import RULES  # it imports this module

    choose("resize rule", task.resize, ("none", *RULES))
    for which in SPLITS:
        _check_split(which, getattr(task, which), task.classes)
        size = getattr(task, which)[0].shape[-1]
        if size != task.size:
            raise BadInput(
                f"images of {which} are of {size} pixels, those of train of {task.size}; "
                f"resize them."
            )


def _check_split(which: str, split: Split, classes: int) -> None:
    """Check images (N, 3, S, S) uint8 and labels (N,) int64 in [0, classes).

    Raises:
        BadInput: they are something else.
    """
    if not isinstance(split, (tuple, list)) or len(split) != 2:
        raise BadInput(f"{which} must be images and labels, not {type(split).__name__}.")
    images, labels = split
    shape = tuple(getattr(images, "shape", ()))
    square = len(shape) == 4 and shape[1] == 3 and shape[2] == shape[3] and 0 not in shape
    if not square or images.dtype != torch.uint8:
        raise BadInput(f"images of {which} must be uint8 (N, 3, S, S), not {_form(images)}.")
    if (
        not isinstance(labels, torch.Tensor)
        or labels.dtype != torch.int64
        or labels.shape != shape[:1]
    ):
        raise BadInput(
            f"labels of {which} must be int64 ({shape[0]},), one an image, not {_form(labels)}."
        )
    low, high = (int(label) for label in labels.aminmax())
    if low < 0 or high >= classes:
        wrong = low if low < 0 else high
        raise BadInput(
            f"labels of {which} must be 0 to {classes - 1}, for {classes} class names, not {wrong}."
        )


def _form(value) -> str:
    """Type and shape of a tensor, or the type of another value."""
    if not isinstance(value, torch.Tensor):
        return type(value).__name__
    return f"{str(value.dtype).removeprefix('torch.')} {tuple(value.shape)}"


def seen_anew(function: Callable) -> Callable:
    """Wrap a function so that its task argument is checked and fingerprinted at each call.

    Task images may be changed in place, and only hashing all bytes in memory reveals it: 3 ms for
    an embedded task, some 0.4 s for 2,000 images of 224 pixels. Mapped images are not read; see
    `stored.known_fingerprint`.
    """

    def anew(value):
        if not isinstance(value, Task):
            return value
        check_task(value)
        return replace(value)

    @wraps(function)
    def called(*args, **given):
        return function(*map(anew, args), **{name: anew(value) for name, value in given.items()})

    return called


def embedded_tasks() -> dict[str, dict]:
    """Name -> description of the embedded tasks of data_manifests/tasks.yaml."""
    return Entries(paths.MANIFESTS / "tasks.yaml", "embedded")


def group_of(task: str) -> str:
    """VTAB's group of a task; "fine" if fine-grained, "other" if no paper groups it."""
    if task in embedded_tasks():
        return embedded_tasks()[task]["group"]
    return catalogue.group(task)


Statistic = float | Sequence[float] | torch.Tensor


def normalise(images: torch.Tensor, mean: Statistic, std: Statistic) -> torch.Tensor:
    """(x / 255 - mean) / std of uint8 (B, 3, H, W); one value, or one per channel."""
    mean, std = (torch.as_tensor(v, dtype=torch.float32).reshape(-1, 1, 1) for v in (mean, std))
    return (images.float() / 255 - mean.to(images.device)) / std.to(images.device)


def load_task(
    name: str,
    data_dir: str | Path | None = None,
    train_size: int | None = None,
    *,
    image_size: int | None = None,
    resize: str = "direct",
) -> Task:
    """Load an embedded task, or one from a folder of data_dir.

    Args:
        name: an embedded task (`embedded_tasks()`), or a task of a folder in data_dir, which has
            the task's name, that of its data set, or an alias (`visprompt data info NAME`). No
            folder may have an embedded task's name.
        data_dir: folder of data sets. Each has images, train800.txt, val200.txt and test.txt (one
            `relative/path label` per line, labels from 0, no picture twice) and optionally
            classes.txt (one name per line); or one folder per class; or the published layout, for
            those that `layouts` knows. How pictures are read is described at `folders.read_lists`.
        train_size: use only this many training images, as balanced over the classes as they allow;
            above the split's size they come from the larger pool, for tasks that have one.
        image_size: side of an image in pixels, 1 to 1024; by default 24 for embedded tasks and 224
            for folders.
        resize: "direct" to image_size x image_size, or "crop": short side to 8/7 of image_size (256
            for 224), then the centre; both bilinear, or "direct-bicubic" and "crop-bicubic".

    Raises:
        BadInput: unknown name, missing or unreadable files, labels outside the classes, impossible
            arguments.
    """
    check_name(name)
    choose("resize rule", resize if isinstance(resize, str) else shown(repr(resize)), RESIZES)
    if not (image_size is None or _whole(image_size) and 1 <= image_size <= LARGEST):
        side = shown(repr(image_size))
        raise BadInput(
            f"image_size must be at least 1 pixel and at most {LARGEST}, a whole number, "
            f"not {side}."
        )
    if not (train_size is None or _whole(train_size)):
        raise BadInput(f"train_size must be a whole number, not {shown(repr(train_size))}.")
    known = embedded_tasks()
    root = None if data_dir is None else task_folder(data_dir, name, known)
    if name in known:
        class_names, splits = known[name]["classes"], _embedded(name, known[name], train_size)
        own = known[name]["image_size"]
        if image_size in (None, own):
            resize = "none"
        else:
            splits = [
                (_fit_tensor(images, image_size, resize), labels) for images, labels in splits
            ]
    elif root is None:
        choose("embedded task (a folder of images also needs data_dir)", name, known)
    else:
        class_names, splits = read_folder(root, image_size or 224, resize)
    splits[0] = _take(name, splits[0], train_size)
    return Task(name, tuple(map(str, class_names)), *splits, resize=resize)  # type: ignore[arg-type, misc]


def _whole(value: object) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool)


def balanced_order(labels: torch.Tensor) -> torch.Tensor:
    """A permutation (N,) of labels (N,) whose prefixes are as balanced as the classes allow."""
    turn = torch.zeros_like(labels)
    for label in labels.unique():
        where = labels == label
        turn[where] = torch.arange(int(where.sum()))
    return turn.argsort(stable=True)


def _take(name: str, split: Split, count: int | None) -> Split:
    images, labels = split
    if count is None:
        return split
    if not 1 <= count <= len(labels):
        most = len(labels) + embedded_tasks().get(name, {}).get("pool", 0)
        raise BadInput(f"train_size must be 1 to {name}'s {most} training images, not {count}.")
    order = balanced_order(labels)[:count]
    return images[order], labels[order]


def _embedded(name: str, entry: dict, train_size: int | None) -> list[Split]:
    if name == "digits":
        return _digits(entry)

    def drawn(stream, count):
        images, labels = pictures(name, count, entry["seed"], stream)
        return torch.from_numpy(images.transpose(0, 3, 1, 2).copy()), torch.from_numpy(labels)

    splits = [drawn(stream, count) for stream, count in enumerate(entry["splits"])]
    if train_size is not None and entry["splits"][0] < train_size <= entry["splits"][0] + entry.get(
        "pool", 0
    ):
        splits[0] = tuple(map(torch.cat, zip(splits[0], drawn(3, entry["pool"]))))
    return splits


def _digits(entry: dict) -> list[Split]:
    """scikit-learn's digits, enlarged three times (bilinear in integers: the same everywhere)."""
    from sklearn.datasets import load_digits  # slow to import

    images, labels = load_digits(return_X_y=True)
    grow = np.zeros((24, 8), np.int64)  # rows in thirds
    for i in range(24):
        cell, part = divmod(i, 3)
        grow[i, cell] += (2, 3, 2)[part]
        if part != 1:
            grow[i, min(max(cell + part - 1, 0), 7)] += 1
    ninths = grow @ images.reshape(-1, 8, 8).astype(np.int64) @ grow.T  # 0..144
    grey = torch.from_numpy(((ninths * 255 + 72) // 144).astype(np.uint8))
    labels = torch.from_numpy(labels.astype(np.int64))
    shuffled = torch.from_numpy(
        np.random.Generator(np.random.PCG64(entry["seed"])).permutation(len(labels))
    )
    order = shuffled[balanced_order(labels[shuffled])]
    parts = order.split(entry["splits"])
    return [(grey[p][:, None].repeat(1, 3, 1, 1), labels[p]) for p in parts]


def _fit_tensor(images: torch.Tensor, size: int, resize: str) -> torch.Tensor:
    """uint8 (N, 3, S, S) -> (N, 3, size, size) by a resize rule."""
    inner = size if resize.startswith("direct") else -(-size * 8 // 7)
    mode, smaller = (
        "bicubic" if resize.endswith("bicubic") else "bilinear",
        inner < images.shape[-1],
    )
    grown = torch.nn.functional.interpolate(
        images.float(), (inner, inner), mode=mode, antialias=smaller
    )
    edge = (inner - size) // 2
    return grown[..., edge : edge + size, edge : edge + size].round().clamp(0, 255).to(torch.uint8)
