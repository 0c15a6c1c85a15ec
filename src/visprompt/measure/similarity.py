"""Similarity of two sets of features: CKA and normalised mutual information."""

import torch


def linear_cka(x: torch.Tensor, y: torch.Tensor) -> float:
    """Linear centred kernel alignment of features (n, D1) and (n, D2) of n images, in [0, 1].

    ||Y'X||_F^2 / (||X'X||_F ||Y'Y||_F) on column-centred features, computed from the n x n Gram
    matrices, since D is often larger than n. AP Figure 5 (A).
    """
    x = x.double() - x.double().mean(0)
    y = y.double() - y.double().mean(0)
    gram_x, gram_y = x @ x.T, y @ y.T
    return float((gram_x * gram_y).sum() / (gram_x.norm() * gram_y.norm()))


@torch.no_grad()
def normalised_mutual_information(prompts: torch.Tensor, patches: torch.Tensor) -> float:
    """NMI of prompts (N_p, D) and an image's patches (B, N, D), averaged over images, in [0, 1].

    SPT Eq. 7-8. The joint distribution of an image is the sigmoid of all products p . e, divided by
    their sum; it gives both marginals, their entropies H and the mutual information I, and NMI = 2
    I / (H(P) + H(E)).
    """
    joint = torch.sigmoid(prompts.double() @ patches.double().transpose(1, 2))  # (B, N_p, N)
    joint = joint / joint.sum((1, 2), keepdim=True)

    def entropy(weights):
        return -torch.special.xlogy(weights, weights).flatten(1).sum(1)

    of_prompts, of_patches = entropy(joint.sum(2)), entropy(joint.sum(1))
    mutual = of_prompts + of_patches - entropy(joint)
    return float((2 * mutual / (of_prompts + of_patches).clamp_min(1e-12)).mean())
