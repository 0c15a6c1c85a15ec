"""A run on a set of Patch Camelyon's shape, in a process of its own: prints the most memory that it
held, in GiB.

    python tests/large_task.py METHOD FOLDER
"""

import resource
import sys
from pathlib import Path

import torch
from timm.models.vision_transformer import VisionTransformer

from visprompt.data.joining import joined
from visprompt.data.stored import Entry, Stored
from visprompt.data.tasks import SPLITS, Task
from visprompt.methods import build_method
from visprompt.models.backbones import Backbone
from visprompt.training.loop import fit_model
from visprompt.training.recipe import Recipe

COUNTS, SIZE = (262_144, 32_768, 32_768), 96  # of train, val and test
STEPS = 100  # of the first epoch


class Enough(Exception):
    """The steps are done."""


def camelyon(folder: Path) -> Task:
    """A task of mapped files without blocks on the disk; train and val are joined, as in a final
    run."""
    labels = [torch.arange(count) % 2 for count in COUNTS]
    entry, images = Entry("camelyon", "0" * 12, labels), []
    for name, count in zip(SPLITS, COUNTS, strict=True):
        with (folder / name).open("wb") as file:
            file.truncate(count * 3 * SIZE**2)
        images.append(Stored.at(folder / name, (count, 3, SIZE, SIZE), entry))
    task = joined(Task("camelyon", ("a", "b"), *zip(images, labels, strict=True), resize="none"))
    task.__dict__["fingerprint"] = entry.fingerprint  # else all bytes are hashed: time, not memory
    return task


def peak(slug: str, task: Task) -> float:
    """GiB that preparation and the first steps take, with what is imported."""
    network = VisionTransformer(
        img_size=SIZE, patch_size=32, embed_dim=16, depth=2, num_heads=2, num_classes=0
    )
    model = build_method(slug, Backbone(network, "small", SIZE, (0.5,) * 3, (0.5,) * 3), 2)
    loss, steps = model.training_loss, iter(range(STEPS))

    def counted(*given):
        if next(steps, None) is None:
            raise Enough
        return loss(*given)

    model.training_loss = counted
    recipe = Recipe(epochs=1, batch_size=64, learning_rate=0.01, standardise=False, cache_gib=0.0)
    try:
        fit_model(model, task, recipe)
    except Enough:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    raise AssertionError("an epoch has more steps")


if __name__ == "__main__":
    print(peak(sys.argv[1], camelyon(Path(sys.argv[2]))))
