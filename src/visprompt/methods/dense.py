"""DA-VPT's metric losses where every patch has a class of its own, as in segmentation.

The paper gives its losses for one label an image and is silent on segmentation. Here a patch is a
positive of the prompt whose cluster holds its own class, and a class token one of every prompt
whose cluster holds a class in the picture. k-means runs over class means of patch features. Patches
that are ignored are in no set.
"""

import torch
from torch import nn
from torch.nn import functional as F

from .da_vpt import Method, proxy_anchor


class Given(nn.Module):
    """Stands in for a backbone where the features are there already."""

    def __init__(self, like: torch.Tensor):
        super().__init__()
        self.place = nn.Parameter(like.new_zeros(()), requires_grad=False)

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        return features


def patch_labels(masks: torch.Tensor, rows: int, columns: int) -> torch.Tensor:
    """The most frequent label of each patch, (B, rows * columns) int64, of masks (B, H, W); of
    equals the lower one."""
    batch, high, wide = masks.shape
    cut = masks.view(batch, rows, high // rows, columns, wide // columns).transpose(2, 3)
    return cut.flatten(3).mode(-1).values.flatten(1).long()


def prepare(
    method: Method, features: torch.Tensor, labels: torch.Tensor, generator: torch.Generator
) -> None:
    """Clusters of classes from features of patches (n, D) and their labels (n,)."""
    method.prepare(Given(features), features, labels, generator)


def dense_loss(
    method: Method, features: torch.Tensor, labels: torch.Tensor, ignored: int
) -> torch.Tensor:
    """beta L(x, p) + lambda L(p, x_cls) of a training step, meaned over guided blocks (DA-VPT Eq.
    5).

    Args:
        features: of patches, (B, N, D), for the clusters of the next epoch.
        labels: (B, N).
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
