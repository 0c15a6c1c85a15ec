"""Intersection over union, and cross-entropy over pixels; ignored pixels count in neither."""

import torch
from torch.nn import functional as F

from ..errors import BadInput

IGNORED = 255  # the label of pixels that nothing is asked of


def confusion(
    predicted: torch.Tensor, truth: torch.Tensor, classes: int, ignored: int = IGNORED
) -> torch.Tensor:
    """Confusion matrix (C, C) int64 in pixels, by (true class, predicted class).

    Raises:
        BadInput: masks of two shapes, or a label that is neither a class nor ignored.
    """
    if predicted.shape != truth.shape:
        raise BadInput(
            f"the predicted mask is {shape(predicted)} and the true one {shape(truth)}; "
            f"bring both to one size."
        )
    check_labels(truth, classes, ignored)
    kept = truth != ignored
    pairs = truth[kept].long() * classes + predicted[kept].long()
    return torch.bincount(pairs, minlength=classes**2).view(classes, classes)


def check_labels(
    mask: torch.Tensor, classes: int, ignored: int = IGNORED, where: str = "the mask"
) -> None:
    """Check that every label of a mask is a class or ignored.

    Raises:
        BadInput: one is not; the message begins with `where`.
    """
    wrong = (mask < 0) | ((mask >= classes) & (mask != ignored))
    if wrong.any():
        label = int(mask[wrong][0])
        raise BadInput(
            f"{where} has the label {label}; give 0 to {classes - 1}, or {ignored} for "
            f"what is ignored."
        )


def shape(mask: torch.Tensor) -> str:
    """The shape of a mask in words, "24 x 36"."""
    return " x ".join(map(str, mask.shape))


def class_overlaps(counts: torch.Tensor) -> torch.Tensor:
    """Intersection over union of each class, (C,) float64; NaN if neither present nor predicted."""
    counts = counts.double()
    both = counts.diagonal()
    return both / (counts.sum(0) + counts.sum(1) - both)  # 0 / 0 is NaN


def mean_overlap(counts: torch.Tensor) -> float:
    """mIoU in percent over all pixels of a split: the mean over classes present or predicted."""
    return round(100 * class_overlaps(counts).nanmean().item(), 4)


def by_constant(counts: torch.Tensor) -> float:
    """The best mIoU in percent of predicting one class everywhere."""
    true = counts.sum(1)
    return round(100 * (true.max() / true.sum() / (true > 0).sum()).item(), 4)


def pixel_loss(logits: torch.Tensor, masks: torch.Tensor, ignored: int = IGNORED) -> torch.Tensor:
    """Mean cross-entropy of (B, C, H, W) and masks (B, H, W) over labelled pixels; 0 if none."""
    total = F.cross_entropy(logits, masks.long(), ignore_index=ignored, reduction="sum")
    return total / (masks != ignored).sum().clamp_min(1)
