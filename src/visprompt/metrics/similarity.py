"""Similarity of two sets of features."""

import torch


def linear_cka(x: torch.Tensor, y: torch.Tensor) -> float:
    """Linear centred kernel alignment of features (n, D1) and (n, D2) of the same n images, in [0, 1].

    ||Y'X||_F^2 / (||X'X||_F ||Y'Y||_F) on column-centred features, computed through the n x n Gram
    matrices, since features are often longer than n. AP Figure 5 (A).
    """
    x = x.double() - x.double().mean(0)
    y = y.double() - y.double().mean(0)
    gram_x, gram_y = x @ x.T, y @ y.T
    return float((gram_x * gram_y).sum() / (gram_x.norm() * gram_y.norm()))
