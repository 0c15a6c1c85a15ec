"""The head's features, standardised before training as `fit` does it; for a loop of one's own."""

import torch

from ..data.tasks import normalise
from ..errors import BadInput
from ..methods import TunedModel
from .loop import in_batches


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
    mean, std, device = model.source.mean, model.source.std, model.feature_mean.device
    features = in_batches(
        lambda x: model.features(model.below(normalise(x, mean, std))), images, device
    )
    model.feature_mean.copy_(features.mean(0))
    model.feature_scale.copy_(features.std(0).clamp_min(1e-3))
