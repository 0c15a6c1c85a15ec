"""Exact k-means in bounded memory.

Used for SPT's token prototypes (Eq. 9-10) and DA-VPT's clusters of classes (Sec. 2.4).
"""

from collections.abc import Callable, Iterable

import torch

from ..progress import progress


def assign(points: torch.Tensor, centroids: torch.Tensor) -> torch.Tensor:
    """Index (n,) of the centroid (K, D) nearest to each point (n, D); the first in a tie.

    Distances are squared Euclidean; |x|^2 is the same for every centroid and is left out.
    """
    return (centroids.square().sum(1) - 2 * points @ centroids.T).argmin(1)


def streamed_kmeans(
    stream: Callable[[], Iterable[list[torch.Tensor]]],
    centroids: list[torch.Tensor],
    iterations: int,
    label: str,
) -> list[torch.Tensor]:
    """Lloyd's algorithm on streamed points, for several independent problems in the same passes.

    Memory: one batch, and K x D sums in float64.

    Args:
        stream: called once per iteration; yields batches, each a list with one (n, D) tensor per
            problem.
        centroids: the initial centroids, one (K, D) tensor per problem.
        iterations: the maximum; it stops earlier when no centroid moves.

    Returns:
        The centroids. That of an empty cluster keeps its place.
    """
    centroids = [c.double() for c in centroids]
    for _ in progress(range(iterations), label):
        sums = [torch.zeros_like(c) for c in centroids]
        counts = [c.new_zeros(len(c)) for c in centroids]
        for batch in stream():
            for points, centre, total, count in zip(batch, centroids, sums, counts, strict=True):
                nearest = assign(points.double(), centre)
                total.index_add_(0, nearest, points.double())
                count += nearest.bincount(minlength=len(centre))
        moved = [
            torch.where(n[:, None] > 0, total / n[:, None].clamp_min(1), c)
            for c, total, n in zip(centroids, sums, counts, strict=True)
        ]
        still = all(torch.equal(a, b) for a, b in zip(moved, centroids, strict=True))
        centroids = moved
        if still:
            break
    return centroids


def cosine_kmeans(
    points: torch.Tensor, centroids: torch.Tensor, iterations: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """Spherical k-means of (n, D) from centroids (K, D): unit centroids, each point's cluster."""
    points, centroids = (torch.nn.functional.normalize(t, dim=1) for t in (points, centroids))
    for _ in range(iterations):
        nearest = (points @ centroids.T).argmax(1)
        sums = torch.zeros_like(centroids).index_add_(0, nearest, points)
        filled = nearest.bincount(minlength=len(centroids))[:, None] > 0
        moved = torch.where(filled, torch.nn.functional.normalize(sums, dim=1), centroids)
        if torch.equal(moved, centroids):
            break
        centroids = moved
    return centroids, (points @ centroids.T).argmax(1)
