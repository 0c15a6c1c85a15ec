"""Make tasks of torchvision's or Hugging Face's data sets, or any list of pictures with labels."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import torch
from PIL import Image

from ..checks import require
from ..errors import BadInput, choose
from .folders import check_name
from .image_cache import room
from .pictures import pixels, readable, shown
from .tasks import LARGEST, RESIZES, Split, Task, balanced_order

# without validation images, every fifth of the training images, as balanced as the classes allow
SHARE = 5
# of a data set with columns: how picture and label may be called
COLUMNS = (("image", "img", "picture"), ("label", "labels", "fine_label", "target", "class"))
GIVE = (
    "give a data set with a length and numbered entries, such as torchvision's "
    "ImageFolder or a split of Hugging Face's"
)


def make_task(
    name: str,
    train: Sequence,
    test: Sequence | None = None,
    val: Sequence | None = None,
    *,
    class_names: Sequence[str] | None = None,
    image_size: int = 224,
    resize: str = "direct",
    columns: Sequence[str] | None = None,
) -> Task:
    """A task from data sets such as torchvision's `ImageFolder` or a Hugging Face split.

    Every picture is decoded once, now, to 3 · image_size² bytes; a split of more than 64 MiB lies
    in a file of the cache folder (VISPROMPT_CACHE), not in memory.

    Args:
        train, test, val: each has a length, and item i is (picture, label) or {"image": …, "label":
            …}: a PIL image or uint8 (H, W, 3), and one label from 0. Give them without transforms
            of their own. A `Subset` keeps the classes of its whole.
        val: None takes every fifth training image.
        class_names: one per class; by default `train.classes` or `train.features["label"].names`,
            else numbers.
        image_size: side of an image in pixels.
        resize: one of `tasks.RESIZES`, see `tasks.load_task`.
        columns: names of the picture's and the label's column, such as ("img", "coarse_label"); by
            default the first of `COLUMNS` that is there.

    Raises:
        BadInput: a split is missing, several in one, or empty; an item is not a picture with a
            label; or a label has no class.
    """
    check_name(name)
    choose("resize rule", resize if isinstance(resize, str) else shown(repr(resize)), RESIZES)
    if (
        isinstance(image_size, bool)
        or not isinstance(image_size, int)
        or not 1 <= image_size <= LARGEST
    ):
        raise BadInput(
            f"image_size must be 1 to {LARGEST} pixels, a whole number, not "
            f"{shown(repr(image_size))}."
        )
    parts = {"train": train, "test": test} | ({} if val is None else {"val": val})
    if columns is not None:
        require("make_task's columns", tuple(columns), tuple[str, str])
    for which, data in parts.items():
        _check_data(which, data, columns)
    splits = {
        which: _split(which, data, image_size, resize, columns) for which, data in parts.items()
    }
    names = _class_names(class_names, _whole(train), splits, columns)
    if val is None:
        images, labels = splits["train"]
        if len(labels) < SHARE:
            raise BadInput(f"{len(labels)} training images leave none for validation; give val.")
        order = balanced_order(labels)
        last = torch.zeros(len(labels), dtype=torch.bool)
        last[order[len(order) - len(order) // SHARE :]] = True
        splits["train"], splits["val"] = _taken(images, labels, ~last), _taken(images, labels, last)
    return Task(name, names, splits["train"], splits["val"], splits["test"], resize=resize)


def _class_names(chosen, train, splits: dict[str, Split], columns) -> tuple[str, ...]:
    """A name for every label: those given, the data set's own, or numbers."""
    highest = max(int(labels.max()) for _, labels in splits.values())
    own = getattr(train, "classes", None) or _feature_names(train, columns)
    names = chosen.tolist() if isinstance(chosen, np.ndarray) else own if chosen is None else chosen
    if names is None:
        count = sum(len(labels) for _, labels in splits.values())
        if highest >= count:  # a mistyped label would make a class of each number below it
            raise BadInput(
                f"label {highest} is too high for {count} images; number the classes from "
                f"0, or give class_names."
            )
        return tuple(map(str, range(highest + 1)))
    if chosen is not None:  # ImageNet's own have one twice
        if not isinstance(names, (list, tuple)) or not all(isinstance(name, str) for name in names):
            raise BadInput(
                f"class_names must be a list of texts, one a class, not {shown(repr(chosen))}."
            )
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise BadInput(f"class_names has {twice!r} twice; give each class a name of its own.")
    if highest >= len(names):
        raise BadInput(
            f"label {highest} has no name among {len(names)} class names; labels begin at 0."
        )
    return tuple(map(str, names))


def _feature_names(data, columns: Sequence[str] | None) -> list[str] | None:
    """The class names of a Hugging Face data set."""
    features = getattr(data, "features", None) or {}
    label = _columns("train", list(features), columns)[1] if features else None
    return getattr(features[label], "names", None) if label else None


def _whole(data):
    """The data set that a `Subset`, or a subset of one, is taken from."""
    while not (hasattr(data, "classes") or hasattr(data, "features")) and hasattr(data, "dataset"):
        data = data.dataset
    return data


def _check_data(which: str, data, columns: Sequence[str] | None) -> None:
    """Check that a split is one data set with a length and items by number.

    Raises:
        BadInput: it is not.
    """
    what = f"{which} is {_an(data)}"
    if isinstance(data, Mapping):
        part = next((name for name in data if str(name).startswith(which)), next(iter(data), which))
        raise BadInput(
            f"{what} of {', '.join(map(str, data)) or 'nothing'}; give one of them, as "
            f"{which}=data[{part!r}]."
        )
    if isinstance(data, (str, Path)):
        raise BadInput(f"{what}; {GIVE}, or load a folder of pictures with load_task.")
    if hasattr(data, "__iter__") and not hasattr(data, "__len__"):
        raise BadInput(
            f"{what}, a stream; load it without streaming, or give list(...) of as much as "
            f"fits into memory."
        )
    if not (hasattr(data, "__getitem__") and hasattr(data, "__len__")):
        raise BadInput(f"{what}; {GIVE}.")
    if not len(data):
        raise BadInput(f"the split {which} of this data set is empty.")
    there = getattr(data, "column_names", None)
    if isinstance(there, list):
        _columns(which, there, columns)


def _columns(which: str, there: list, asked: Sequence[str] | None) -> tuple[str, str]:
    """The columns of picture and label: those asked for, else the first of `COLUMNS` there.

    Raises:
        BadInput: one is missing; the message names the columns there are.
    """
    wanted = COLUMNS if asked is None else [(name,) for name in asked]
    found = [next((name for name in names if name in there), None) for names in wanted]
    lacking = [names[0] for names, name in zip(wanted, found, strict=True) if name is None]
    if lacking:
        every = ", ".join(map(str, there)) or "none"
        raise BadInput(
            f"{which} has the columns {every}, {' and '.join(f'no {name}' for name in lacking)}; "
            f"name yours: columns=('image', 'label')."
        )
    return found[0], found[1]


def _an(value) -> str:
    """The type of a value, with its article."""
    name = type(value).__name__
    return f"{'an' if name[0] in 'AEIOUaeiou' else 'a'} {name}"


def _split(which: str, data: Sequence, size: int, resize: str, columns) -> Split:
    """Images (N, 3, S, S) uint8 and labels (N,) int64 of a split."""
    images, labels = room((len(data), 3, size, size)), []
    for number in range(len(data)):
        where = f"{which}, entry {number}"
        with readable(where):
            entry = data[number]
            image, label = _pair(which, where, entry, columns)
            images[number] = pixels(image, size, resize, where)
        labels.append(label)
    return torch.from_numpy(images), torch.tensor(labels)


def _taken(images: torch.Tensor, labels: torch.Tensor, chosen: torch.Tensor) -> Split:
    """The chosen (N,) bool of a split; other than by indexing, in a file where they are many."""
    places = chosen.nonzero().flatten().numpy()
    found = room((len(places), *images.shape[1:]))
    np.take(images.numpy(), places, axis=0, out=found, mode="clip")  # "raise" makes a copy first
    return torch.from_numpy(found), labels[chosen]


def _pair(which: str, where: str, entry, columns) -> tuple[Image.Image, int]:
    """Picture and label of an item."""
    if isinstance(entry, Mapping):
        entry = [entry[name] for name in _columns(which, list(entry), columns)]
    if not isinstance(entry, (list, tuple)) or len(entry) < 2:
        raise BadInput(f"{where} is {_an(entry)}; give a picture and its label.")
    image, label = entry[:2]
    if isinstance(image, np.ndarray):
        if (
            image.dtype != np.uint8
            or image.ndim not in (2, 3)
            or (image.ndim == 3 and image.shape[2] not in (3, 4))
        ):
            what = f"{image.dtype} {image.shape}"
            raise BadInput(f"{where} is a ndarray {what}; give a PIL image or uint8 (H, W, 3).")
        if not image.size:
            raise BadInput(f"{where} has no pixel; give another picture.")
        image = Image.fromarray(image)
    if not isinstance(image, Image.Image):
        raise BadInput(
            f"{where} is {_an(image)}; give a PIL image, without a transform of the data set's."
        )
    if isinstance(label, (list, tuple)) or getattr(label, "ndim", False):
        raise BadInput(f"{where} has several labels; a task has one class an image, so give one.")
    if (
        isinstance(label, bool)
        or not isinstance(label, (int, np.integer))
        or not 0 <= label < 2**63
    ):
        raise BadInput(f"{where} has the label {label!r}; give a whole number from 0.")
    return image, int(label)
