"""How much memory one run needs on a task with many images, with their files mapped and with all of
them in memory."""

import contextlib
import io
import os
import tempfile
import time
from functools import partial
from pathlib import Path

import numpy as np
import torch

from visprompt.data import image_cache
from visprompt.data.tasks import Task
from visprompt.methods import build_method
from visprompt.models.backbones import Backbone
from visprompt.records import Record, in_own_process, recorded
from visprompt.training.loop import fit_model
from visprompt.training.recipe import Recipe

from .clock import machine
from .start_times import memory_growth

NAME = "task-memory"
MODEL = "a ViT of two blocks"
LABEL = "memory of a run on many test images: mapped over in memory"
SPLITS = (800, 200, 73_728)  # of dSprites in VTAB-1k, whose pictures have 64 pixels
SIZE, CLASSES = 64, 16


def task_memory(
    splits: tuple[int, int, int] = SPLITS, size: int = SIZE, run: bool = True
) -> Record | None:
    """Record of what a linear probe on drawn pictures adds at most to a process that has loaded
    everything else.

    Returns:
        A record whose values hold "images_mb", the bytes of all images, and for "mapped" and "in
        memory" "growth_mb", "load_seconds" (mapped: first "decode_seconds", once), "fit_seconds",
        and the "test" accuracy, which is the same.
    """
    chosen = {"what": NAME, "name": NAME, "machine": machine("cpu"), "device": "cpu", "repeats": 1}
    chosen |= {"splits": list(splits), "image_size": size}

    def compute():
        with tempfile.TemporaryDirectory() as folder:
            in_own_process(measured, folder, splits, size)  # decodes
            found = {
                "mapped": in_own_process(measured, folder, splits, size),
                "in memory": in_own_process(measured, "none", splits, size),
            }
        return {**found, "images_mb": round(sum(splits) * 3 * size**2 / 2**20, 1)}

    return recorded("bench", chosen, compute, run=run)


def drawn_picture(number: int, size: int) -> np.ndarray:
    """A grey picture (size, size) of a bar whose place tells the class."""
    picture = np.full((size, size), number % 251, np.uint8)
    picture[:, (number % CLASSES) * size // CLASSES :][:, : size // CLASSES] = 255
    return picture


def measured(folder: str, splits: tuple[int, int, int], size: int) -> dict:
    """What `task_memory` runs in a process of its own."""
    from timm.models.vision_transformer import VisionTransformer

    os.environ["VISPROMPT_CACHE"] = folder
    image_cache.SMALL = 0
    torch.manual_seed(0)
    network = VisionTransformer(
        img_size=size, patch_size=size // 4, embed_dim=32, depth=2, num_heads=2, num_classes=0
    )
    model = build_method(
        "linear-probe", Backbone(network, "memory", size, (0.5,) * 3, (0.5,) * 3), CLASSES
    )
    found = {}

    def action(splits=splits):
        begin, starts = time.perf_counter(), np.cumsum((0, *splits))
        parts = [
            [
                (partial(drawn_picture, int(number), size), int(number) % CLASSES, "drawn")
                for number in range(start, start + count)
            ]
            for start, count in zip(starts, splits)
        ]
        with contextlib.redirect_stderr(io.StringIO()):  # a bar
            loaded = image_cache.load_images("bars", Path(folder), parts, size, "direct")
        task = Task("bars", tuple(map(str, range(CLASSES))), *loaded, resize="direct")
        task.fingerprint  # what a record would ask for
        found["load_seconds"] = time.perf_counter() - begin
        values = fit_model(model, task, Recipe(epochs=1))
        found["fit_seconds"], found["test"] = values["fit_seconds"], values["test"]

    action((16, 16, 16))  # what is imported at first use counts for neither
    return {"growth_mb": round(memory_growth(action, "cpu") / 2**20, 1), **found}


def memory_rows(record: Record) -> list[dict]:
    """The row of `make bench`."""
    values, settings = record.values, record.settings
    mapped, plain = values["mapped"], values["in memory"]
    return [
        {
            "pair": f"A run on {settings['splits'][-1]:,} test images of "
            f"{settings['image_size']} px: mapped over in memory",
            "model": MODEL,
            "precision": "float32",
            "ratio": f"{mapped['growth_mb'] / plain['growth_mb']:.2f}",
            "range": "peak memory",
            "note": f"{mapped['growth_mb']:.0f} / {plain['growth_mb']:.0f} MiB are added "
            f"at most, by images of "
            f"{values['images_mb']:.0f} MiB; loading {mapped['load_seconds']:.1f} / "
            f"{plain['load_seconds']:.1f} s, "
            f"fitting {mapped['fit_seconds']:.1f} / {plain['fit_seconds']:.1f} s",
        }
    ]
