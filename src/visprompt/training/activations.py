"""What enters the trained part of a model: images, or activations below it that runs share."""

import itertools
import math
from collections.abc import Callable

import torch

from ..data.tasks import SPLITS, Task, normalise
from ..methods import TunedModel
from ..methods.base import device_of
from ..models.remembered import remembered_fingerprint
from ..records import watching
from ..records.watch import note
from .recipe import Recipe

FREE_SHARE = 0.5  # of a GPU's free memory that cached activations may take


class Shared:
    """Activations below the first trained block, kept on their device for later runs."""

    def __init__(self):
        self.kept: dict[tuple, tuple] = {}  # what was computed, and the code that did

    def get(self, key: tuple, compute: Callable[[], torch.Tensor], gib: float) -> torch.Tensor:
        """The tensor of a key, computed if it is not kept; at most `gib` GiB are kept."""
        kept = self.kept.pop(key, None)
        if kept is None:
            with watching() as seen:
                kept = compute(), seen
        else:
            note(kept[1])
        self.kept[key] = kept
        while (
            len(self.kept) > 1 and sum(part.nbytes for part, _ in self.kept.values()) > gib * 2**30
        ):
            del self.kept[next(iter(self.kept))]
        return kept[0]

    def leave(self, task: str) -> None:
        """Drop the activations of the task with this fingerprint."""
        self.kept = {key: kept for key, kept in self.kept.items() if task not in key}


SHARED = Shared()


class Entering:
    """A task's splits as they enter the trained part of a model.

    Args:
        cache: whether activations below the first trained block may be cached.

    Attributes:
        kept: the splits whose activations are cached.
    """

    def __init__(self, model: TunedModel, task: Task, recipe: Recipe, cache: bool):
        self.model, self.task, self.gib = model, task, recipe.cache_gib
        self.first, self.device = model.method.start, device_of(model)
        backbone = model.source
        self.kept = kept_splits(model, task, recipe) if cache else ()
        # copied there once, since a copy for each batch would make a GPU wait
        self.mean, self.std = (
            torch.as_tensor(value, dtype=torch.float32, device=self.device)
            for value in (backbone.mean, backbone.std)
        )
        weights = remembered_fingerprint(backbone) if self.kept else None
        # with the name, since random weights are known by their seed alone
        self.known = (backbone.name, backbone.mean, backbone.std, weights, task.fingerprint)

    def pixels(self, images: torch.Tensor) -> torch.Tensor:
        """Normalised images (B, 3, S, S)."""
        return normalise(images, self.mean, self.std)

    def below(self, images: torch.Tensor) -> torch.Tensor:
        """Activations of images as they are cached: in float32, whatever the recipe's precision."""
        with torch.autocast(self.device.type, enabled=False):
            return self.model.below(self.pixels(images))

    def of(self, split: str) -> torch.Tensor:
        """A split's images, uint8 (N, 3, S, S), or its activations that other runs share."""
        images = getattr(self.task, split)[0]
        if split not in self.kept:
            return images.to(self.device) if split == "train" else images
        key = (*self.known, split, self.first, self.device)
        return SHARED.get(key, lambda: in_batches(self.below, images, self.device), self.gib)

    def features(self, split: str) -> Callable[[torch.Tensor], torch.Tensor]:
        """The function from rows of `of(split)` to pooled features (B, D)."""
        model = self.model
        if split in self.kept:
            return model.features
        if self.kept:
            return lambda x: model.features(self.below(x))
        return lambda x: model.features(model.below(self.pixels(x)))


def kept_splits(model: TunedModel, task: Task, recipe: Recipe) -> tuple[str, ...]:
    """The splits whose activations are cached: train first, as many as fit into the bound together.

    The bound is the recipe's `cache_gib`, on a GPU also half of its free memory.
    """
    if model.method.start < 0 or recipe.augmentation != "none":
        return ()
    most = min(recipe.cache_gib, FREE_SHARE * free_gib(device_of(model)))
    images = itertools.accumulate(len(getattr(task, split)[1]) for split in SPLITS)
    return tuple(
        split
        for split, count in zip(SPLITS, images, strict=True)
        if activation_gib(model, count) <= most
    )


def free_gib(device: torch.device) -> float:
    """GiB of a GPU that are free, or kept here for later runs; infinite for another device."""
    if device.type != "cuda":
        return math.inf
    unused = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
    shared = sum(part.nbytes for part, _ in SHARED.kept.values())
    return (torch.cuda.mem_get_info(device)[0] + unused + shared) / 2**30


@torch.no_grad()
def in_batches(function: Callable, inputs: torch.Tensor, device, size: int = 250) -> torch.Tensor:
    """Apply a function to (n, ...) in batches of `size`, without gradients."""
    return torch.cat([function(part.to(device)) for part in inputs.split(size)])


def activation_gib(model: TunedModel, count: int) -> float:
    """Size of `count` cached activations, in GiB of float32."""
    start, backbone = model.method.start, model.source
    shape = (backbone.width,) if start == backbone.depth else backbone.shapes()[start]
    return count * math.prod(shape) * 4 / 2**30
