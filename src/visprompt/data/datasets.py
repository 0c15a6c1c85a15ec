"""Data sets of other libraries as tasks: torchvision's, Hugging Face's, or any list of pictures with labels."""

from collections.abc import Sequence

import numpy as np
import torch
from PIL import Image

from ..errors import BadInput, choose
from .pictures import pixels
from .tasks import RESIZES, Split, Task, balanced_order

SHARE = 5  # without validation images, every fifth of the training images, as balanced as the classes allow


def make_task(
    name: str,
    train: Sequence,
    test: Sequence,
    val: Sequence | None = None,
    *,
    class_names: Sequence[str] | None = None,
    image_size: int = 224,
    resize: str = "direct",
) -> Task:
    """A task from data sets such as `torchvision.datasets.ImageFolder` or one split of a Hugging Face data set.

    Args:
        train, test, val: each has a length, and gives for a number (picture, label) or {"image": …, "label": …}: a
            PIL image or uint8 (H, W, 3), and a label from 0. Leave their own transforms out.
        val: None takes every fifth training image.
        class_names: one a class; unless given those of `train.classes` or `train.features["label"].names`, else numbers.
        resize: one of `tasks.RESIZES`, see `tasks.load_task`.

    Raises:
        BadInput: a split is empty, an entry is no picture with a label, or a label has no class.
    """
    choose("resize rule", resize, RESIZES)
    given = {"train": train, "val": val, "test": test}
    splits = {which: _split(which, part, image_size, resize) for which, part in given.items() if part is not None}
    if val is None:
        images, labels = splits["train"]
        if len(labels) < SHARE:
            raise BadInput(f"{len(labels)} training images leave none for validation; give val.")
        order = balanced_order(labels)
        last = torch.zeros(len(labels), dtype=torch.bool)
        last[order[len(order) - len(order) // SHARE :]] = True
        splits["train"], splits["val"] = (images[~last], labels[~last]), (images[last], labels[last])
    highest = max(int(labels.max()) for _, labels in splits.values())
    names = class_names or getattr(train, "classes", None) or _feature_names(train) or [str(i) for i in range(highest + 1)]
    if highest >= len(names):
        raise BadInput(f"label {highest} has no name among {len(names)} class names; labels begin at 0.")
    return Task(name, tuple(map(str, names)), splits["train"], splits["val"], splits["test"], resize=resize)


def _feature_names(data) -> list[str] | None:
    """The names of the classes of a Hugging Face data set."""
    features = getattr(data, "features", None)
    return getattr(features["label"], "names", None) if features and "label" in features else None


def _split(which: str, data: Sequence, size: int, resize: str) -> Split:
    """Images (N, 3, S, S) uint8 and labels (N,) int64."""
    if not len(data):
        raise BadInput(f"the split {which} of this data set is empty.")
    images, labels = np.empty((len(data), 3, size, size), np.uint8), []
    for number in range(len(data)):
        entry, where = data[number], f"{which}, entry {number}"
        image, label = (entry.get("image"), entry.get("label")) if isinstance(entry, dict) else tuple(entry)[:2]
        if isinstance(image, np.ndarray) and image.dtype == np.uint8:
            image = Image.fromarray(image)
        if not isinstance(image, Image.Image):
            raise BadInput(f"{where} is a {type(image).__name__}; give a PIL image, without a transform of the data set's.")
        if isinstance(label, bool) or not isinstance(label, (int, np.integer)) or label < 0:
            raise BadInput(f"{where} has the label {label!r}; give a whole number from 0.")
        images[number] = pixels(image, size, resize, where)
        labels.append(int(label))
    return torch.from_numpy(images), torch.tensor(labels)
