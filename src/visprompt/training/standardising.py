"""The head's features, standardised before training."""

from collections.abc import Callable

import torch

from ..data.tasks import normalise
from ..errors import BadInput
from ..methods import TunedModel
from .activations import in_batches


def standardise(model: TunedModel, images: torch.Tensor) -> None:
    """Set mean and scale of the features that enter a model's head to those of training images.

    `fit` does this before its first step (`Recipe.standardise`). In a loop of your own, call it
    once, after the model is built and before it is trained: without it, the head sees features of
    very different sizes and learns slowly.

    Args:
        images: (N, 3, S, S) uint8, such as `task.train[0]`.

    Raises:
        BadInput: the images are of another type or shape.
    """
    if images.dtype != torch.uint8 or images.ndim != 4:
        raise BadInput(
            f"standardise takes images (N, 3, S, S) uint8, not {tuple(images.shape)} "
            f"{images.dtype}; give task.train[0]."
        )
    mean, std = model.source.mean, model.source.std
    standardise_head(model, lambda x: model.features(model.below(normalise(x, mean, std))), images)


@torch.no_grad()
def standardise_head(model: TunedModel, features: Callable, inputs: torch.Tensor) -> None:
    """Set mean and scale to those of `features` of a training split, given as they take it."""
    found = in_batches(features, inputs, model.feature_mean.device)
    model.feature_mean.copy_(found.mean(0))
    model.feature_scale.copy_(found.std(0).clamp_min(1e-3))
