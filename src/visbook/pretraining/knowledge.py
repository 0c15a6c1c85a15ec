"""How much of the source a network knows: by its own head, by a linear probe, and by a start for
few labels."""

import copy
from dataclasses import replace

import torch
from torch import nn

from visprompt.data.tasks import Split, normalise

from .objectives import Student, pooled
from .steps import fit

# of fine-tuning with few labels: the usual ones of AdamW on networks of this size
RATES = (5e-4, 2e-3)


def accuracy(model: nn.Module, images: torch.Tensor, labels: torch.Tensor, recipe) -> float:
    """Share of images (N, 3, H, W) uint8 whose largest logit is the label's."""
    model.eval()
    with torch.inference_mode():
        hits = sum(
            (model(normalise(x, recipe.mean, recipe.std)).argmax(1) == y).sum().item()
            for x, y in zip(images.split(500), labels.split(500), strict=True)
        )
    return hits / len(labels)


def probe_accuracy(
    model: nn.Module, train: Split, held_out: Split, recipe, images: int = 6000
) -> float:
    """Held-out accuracy of a logistic regression on the pooled features of the first `images`
    training pictures."""
    from sklearn.linear_model import LogisticRegression  # slow to import
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    model.eval()

    @torch.inference_mode()
    def features(images):
        parts = (normalise(part, recipe.mean, recipe.std) for part in images.split(500))
        return torch.cat([pooled(model, x) for x in parts]).numpy()

    probe = make_pipeline(StandardScaler(), LogisticRegression(max_iter=300))
    probe.fit(features(train[0][:images]), train[1][:images].numpy())
    return probe.score(features(held_out[0]), held_out[1].numpy())


def few_labels_accuracy(model: nn.Module, train: Split, held_out: Split, recipe) -> float:
    """Held-out accuracy after fine-tuning a copy of the whole network with the labels of a few
    training pictures.

    The rate, of two, is the better one on as many pictures behind those.
    """
    few, recipe = (
        min(recipe.few_labels, recipe.images // 2),
        replace(recipe, batch=recipe.few_batch),
    )
    first, second = (tuple(part[at : at + few] for part in train) for at in (0, few))
    found = []
    for rate in RATES:
        torch.manual_seed(recipe.seed)
        student = Student(copy.deepcopy(model).requires_grad_(True), side_loss=0.0)
        fit(
            student,
            student.model.parameters(),
            first,
            recipe,
            recipe.few_epochs,
            rate,
            lambda row: None,
            "few labels",
        )
        found.append(
            (accuracy(student.model, *second, recipe), accuracy(student.model, *held_out, recipe))
        )
    return max(found)[1]
