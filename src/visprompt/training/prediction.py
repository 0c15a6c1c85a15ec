"""Predictions of a tuned model for pictures."""

from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from PIL import Image

from ..checks import require
from ..data.pictures import kind, pixels, read_picture, readable, shown
from ..data.resizing import ALIASED, CENTRE, squared
from ..data.tasks import normalise
from ..errors import BadInput
from ..methods import TunedModel
from ..progress import progress

ENDINGS = set(Image.registered_extensions())


def predict(model: TunedModel, pictures, top: int = 1) -> pd.DataFrame:
    """Classify pictures, prepared as those of the task that the model was fitted to.

    Args:
        pictures: a PIL image, a path, a folder (all pictures below it), or a list of these.
        top: number of classes per picture, the most probable first.

    Returns:
        One row per picture and class: "picture" (its path or number), "class", "probability"
        (softmax, not calibrated).

    Raises:
        BadInput: the model was fitted to no task, a picture cannot be read, or there is none.
    """
    require("the model", model, TunedModel)
    if model.task is None:
        raise BadInput(
            "this model knows no class names: fit it with vp.fit, or load one that was "
            "saved after that."
        )
    names = model.task["class_names"]
    if isinstance(top, bool) or not isinstance(top, int) or not 1 <= top <= len(names):
        raise BadInput(f"top must be 1 to {len(names)}, the number of classes, not {top!r}.")
    singles = list(_found(pictures))
    if not singles:
        raise BadInput(
            f"there is no picture in {pictures}; give a folder with some, such as PNG or "
            f"JPEG files."
        )
    rows, device = [], next(model.parameters()).device
    model.eval()
    for number, picture in progress(list(enumerate(singles)), "predicting"):
        image = torch.tensor(_pixels(model.task, picture, number), device=device)[None]
        with torch.no_grad():
            likely = (
                model(normalise(image, model.source.mean, model.source.std))[0]
                .float()
                .softmax(-1)
                .topk(top)
            )
        shown = number if isinstance(picture, Image.Image) else str(picture)
        rows += [
            {"picture": shown, "class": names[i], "probability": float(p)}
            for p, i in zip(*likely, strict=True)
        ]
    return pd.DataFrame(rows)


def _pixels(task: dict, picture, number: int) -> np.ndarray:
    """A picture prepared as the task's were, (3, S, S) uint8."""
    size, resize = task["image_size"], "direct" if task["resize"] == "none" else task["resize"]
    single = isinstance(picture, Image.Image)
    if resize in (CENTRE, ALIASED):
        where = f"picture {number}" if single else f"predict: image {shown(picture)}"
        with readable(where), nullcontext(picture) if single else Image.open(picture) as opened:
            return np.asarray(squared(opened, size, resize, where)).transpose(2, 0, 1)
    if single:
        with readable(f"picture {number}"):
            return pixels(picture, size, resize, f"picture {number}")
    return read_picture(Path(picture), size, resize, "predict")


def _found(pictures):
    """The single pictures of a picture, path, folder or list."""
    if isinstance(pictures, (list, tuple)):
        for one in pictures:
            yield from _found(one)
    elif isinstance(pictures, Image.Image):
        yield pictures
    elif isinstance(pictures, (str, Path)):
        path = Path(pictures)
        if kind(path, f"predict: image {shown(path)}") == "folder":
            yield from sorted(
                p for p in path.rglob("*") if p.suffix.lower() in ENDINGS and p.is_file()
            )
        else:
            yield path
    else:
        raise BadInput(
            f"predict takes PIL images, paths and folders, not a {type(pictures).__name__}."
        )
