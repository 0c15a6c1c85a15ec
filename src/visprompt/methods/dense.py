"""DA-VPT's metric losses for segmentation, where every patch has a class of its own.

The paper defines its losses for one label per image and does not say how it segments. Here a patch
is a positive of the prompt whose cluster holds the patch's class, and a class token is a positive
of every prompt whose cluster holds a class in the image. k-means runs over class means of patch
features. Ignored patches are neither positive nor negative.
"""

import torch
from torch import nn
from torch.nn import functional as F

from .da_vpt import Method, proxy_anchor


class Given(nn.Module):
    """Stands in for a backbone when the features are already computed."""

    def __init__(self, like: torch.Tensor) -> None:
        super().__init__()
        self.place = nn.Parameter(like.new_zeros(()), requires_grad=False)

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        return features


def patch_labels(masks: torch.Tensor, rows: int, columns: int) -> torch.Tensor:
    """Most frequent label per patch of masks (B, H, W): (B, rows * columns) int64.

    In a tie the lower label.
    """
    batch, high, wide = masks.shape
    cut = masks.view(batch, rows, high // rows, columns, wide // columns).transpose(2, 3)
    return cut.flatten(3).mode(-1).values.flatten(1).long()


def prepare(
    method: Method, features: torch.Tensor, labels: torch.Tensor, generator: torch.Generator
) -> None:
    """Cluster the classes from patch features (n, D) and their labels (n,)."""
    method.prepare(Given(features), features, labels, generator)  # type: ignore[arg-type]


def dense_loss(
    method: Method, features: torch.Tensor, labels: torch.Tensor, ignored: int
) -> torch.Tensor:
    """beta L(x, p) + lambda L(p, x_cls) of a step, averaged over guided blocks (DA-VPT Eq. 5).

    Args:
        features: patch features (B, N, D), from which the next epoch's clusters are made.
        labels: (B, N), the class of each patch.
        ignored: the label of patches without a class.
    """
    kept = labels != ignored
    method.add_features(features.detach()[kept], labels[kept])
    settings, terms = method.settings, []
    # (B, N, C)
    classes = F.one_hot(labels.where(kept, 0), method.num_classes).bool() & kept[..., None]
    # (M, C)
    in_cluster = method.cluster == torch.arange(method.clusters, device=labels.device)[:, None]
    for index in method.guided:
        proxies, seen = (
            F.normalize(method.proxies(index), dim=-1),
            F.normalize(method.seen[index], dim=-1),
        )
        samples = [(settings.beta, seen[:, -labels.shape[1] :][kept], in_cluster[:, labels[kept]])]
        if method.prefix:
            there = classes.any(1)  # (B, C)
            samples.append((settings.lambda_, seen[:, 0], (in_cluster[:, None] & there).any(-1)))
        for weight, points, positive in samples:
            if weight and len(points):
                args = positive, settings.margin, settings.temperature, settings.normaliser
                terms.append(weight * proxy_anchor(proxies @ points.T, *args))
    method.seen, method.queries = {}, {}
    return sum(terms) / len(method.guided)
