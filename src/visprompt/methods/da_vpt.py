"""DA-VPT: VPT-Deep with two metric losses that tie prompts to clusters of classes.

DA-VPT Sec. 2, Eq. 3-5. Each prompt of a guided block is the proxy of the classes in one cluster.
The first loss pulls a prompt towards the patches of its classes and away from the others; the
second does the same for class tokens.
"""

from dataclasses import dataclass
from typing import Any

import torch
from torch.nn import functional as F

from ..checks import Count, Positive, Rounds, Share, Weight
from ..errors import BadInput, choose
from ..models.backbones import Backbone
from ..models.blocks import KeysValues, Project
from . import prompts
from .clustering import cosine_kmeans


@dataclass(frozen=True)
class Settings:
    """Number of prompts, guided blocks, and the metric losses."""

    prompt_tokens: Count = 10  # of a block that is not guided, as for VPT-Deep and iVPT
    # M, clusters of classes, at most the classes; None: prompt_tokens, or all classes
    guided_tokens: Count | None = None
    # first guided block; None: the last block, best "in most cases" (Sec. 4.3.2)
    guided_from: int | None = None
    guided_to: int | None = None  # last guided block; None: the last
    beta: Weight = 0.1  # weight of patches-prompts (Eq. 5); the optimum is below 1 (Fig. 5)
    lambda_: Weight = 0.1  # weight of prompts-class token (Eq. 5)
    temperature: Positive = 1 / 32  # tau of Eq. 4, the released code's
    margin: Share = 0.1  # delta of Eq. 4, the released code's
    # Eq. 4 divides the first part by |P+|; "all", the released code, by |P|
    normaliser: str = "positive"
    # compare p W_Q, "higher performance" (Sec. 2.2); "none" compares the prompt itself
    projection: str = "query"
    # what the attention gives (Sec. 2.3); "tokens" compares what enters the block
    patches: str = "attention"
    kmeans_iterations: Rounds = 20  # the released code's bound


def proxy_anchor(
    similarity: torch.Tensor,
    positive: torch.Tensor,
    margin: float,
    temperature: float,
    normaliser: str = "positive",
) -> torch.Tensor:
    """Proxy-anchor loss (Eq. 4) of M proxies and n samples, from cosine similarities.

    Args:
        similarity: (M, n).
        positive: (M, n) bool, whether a sample belongs to the proxy's classes.
        margin, temperature: delta and tau of Eq. 4.
        normaliser: "positive" averages the positive term over the proxies that have positives,
            "all" over all proxies.

    Returns:
        A scalar: log(1 + sum exp) over positives, averaged over proxies, plus the same over
        negatives, averaged over all proxies.
    """
    absent = torch.finfo(similarity.dtype).min

    def smooth(
        scores: torch.Tensor, mask: torch.Tensor
    ) -> torch.Tensor:  # LSE_0^+, the sum over an empty set is 0
        zero = scores.new_zeros(len(scores), 1)
        return torch.cat([zero, scores.masked_fill(~mask, absent)], 1).logsumexp(1)

    attract = smooth(-(similarity - margin) / temperature, positive)
    repel = smooth((similarity + margin) / temperature, ~positive)
    proxies = positive.any(1).sum().clamp_min(1) if normaliser == "positive" else len(similarity)
    return attract.sum() / proxies + repel.mean()


class Method(prompts.Deep):
    """Trains N prompts of width D per block; M in guided blocks."""

    families = ("vit",)
    cluster: torch.Tensor  # class -> prompt
    centroids: torch.Tensor
    sums: torch.Tensor  # of this epoch's features, by class; None before the first
    counts: torch.Tensor

    def __init__(self, backbone: Backbone, settings: Any, num_classes: int) -> None:
        last = backbone.depth - 1
        first, end = (
            last if at is None else at for at in (settings.guided_from, settings.guided_to)
        )
        if not 0 <= first <= end <= last:
            raise BadInput(
                f"{backbone.name} has blocks 0 to {last}; guided blocks {first} to {end} "
                f"are no range of them."
            )
        choose("normaliser", settings.normaliser, ["positive", "all"])
        choose("projection", settings.projection, ["query", "none"])
        choose("patches", settings.patches, ["attention", "tokens"])
        for name in ("beta", "lambda_", "temperature"):
            if getattr(settings, name) < 0 or (name == "temperature" and settings.temperature == 0):
                raise BadInput(
                    f"{name} must be above 0, or 0 for a weight, not {getattr(settings, name)}."
                )
        self.clusters = settings.guided_tokens or min(settings.prompt_tokens, num_classes)
        prompts.check_tokens(self.clusters, "guided_tokens")
        if self.clusters > num_classes:
            raise BadInput(
                f"guided_tokens must be 1 to {num_classes}, one cluster of classes each, "
                f"not {self.clusters}."
            )
        self.guided, self.num_classes = range(first, end + 1), num_classes
        super().__init__(backbone, settings, num_classes)
        self.seen, self.queries = {}, {}
        # class -> prompt
        self.register_buffer("cluster", torch.arange(num_classes) % self.clusters)
        self.register_buffer("centroids", torch.zeros(self.clusters, backbone.width))
        self.sums, self.counts = None, None  # of this epoch's features, by class

    def tokens_at(self, index: int) -> int:
        return self.clusters if index in self.guided else super().tokens_at(index)

    def watches(self, index: int) -> bool:
        return self.training and index in self.guided and self.settings.patches == "attention"

    def watch(self, index: int, x: torch.Tensor) -> None:
        if self.watches(index):
            self.seen[index] = x

    def before_block(self, index: int, x: torch.Tensor) -> torch.Tensor:
        if self.training and index in self.guided and self.settings.patches == "tokens":
            self.seen[index] = x
        return x

    def extra(self, index: int, project: Project) -> KeysValues | None:
        q, k, v = project(self.entering(index))
        if index in self.guided and self.settings.projection == "query":
            self.queries[index] = q.transpose(1, 2).flatten(2)[0]
        return k, v

    def proxies(self, index: int) -> torch.Tensor:
        """The prompts (M, D) of a guided block as the losses see them."""
        return self.queries[index] if self.settings.projection == "query" else self.entering(index)

    def loss(self, features: torch.Tensor, labels: torch.Tensor) -> torch.Tensor | float:
        """beta L(x, p) + lambda L(p, x_cls) (Eq. 5), averaged over guided blocks.

        The paper does not say how the losses of several blocks are combined. A ViT without class
        token has the first term alone.
        """
        self.add_features(features.detach(), labels)
        settings, terms = self.settings, []
        for index in self.guided:
            proxies, seen = (
                F.normalize(self.proxies(index), dim=-1),
                F.normalize(self.seen[index], dim=-1),
            )
            # (M, B)
            mine = (
                self.cluster[labels] == torch.arange(self.clusters, device=labels.device)[:, None]
            )
            patches = seen[:, self.prefix :]
            samples = [
                (settings.beta, patches.flatten(0, 1), mine.repeat_interleave(patches.shape[1], 1))
            ]
            if self.prefix:
                samples.append((settings.lambda_, seen[:, 0], mine))
            for weight, points, positive in samples:
                if weight:
                    args = positive, settings.margin, settings.temperature, settings.normaliser
                    terms.append(weight * proxy_anchor(proxies @ points.T, *args))
        self.seen, self.queries = {}, {}
        return sum(terms) / len(self.guided)

    def add_features(self, features: torch.Tensor, labels: torch.Tensor) -> None:
        """Add features (B, D) to this epoch's sums per class."""
        if self.sums is None:
            self.sums = features.new_zeros(self.num_classes, features.shape[1])
            self.counts = features.new_zeros(self.num_classes)
        self.sums.index_add_(0, labels, features)
        self.counts.index_add_(0, labels, torch.ones_like(features[:, 0]))

    def recluster(self) -> None:
        """Cluster the class means by cosine k-means, from the last centroids (Sec. 2.4)."""
        present = self.counts > 0
        means = self.sums[present] / self.counts[present, None]
        centroids, nearest = cosine_kmeans(means, self.centroids, self.settings.kmeans_iterations)
        self.centroids.copy_(centroids)
        self.cluster[present] = nearest
        self.sums = None

    @torch.no_grad()
    def prepare(
        self,
        backbone: Backbone,
        images: torch.Tensor,
        labels: torch.Tensor,
        generator: torch.Generator,
    ) -> None:
        """Class means of the frozen backbone's features, and clusters from random classes."""
        self.sums = None
        device = next(backbone.parameters()).device
        for part, truth in zip(images.split(250), labels.split(250), strict=True):
            self.add_features(backbone(part.to(device)), truth.to(device))
        present = self.counts.nonzero().flatten()
        if len(present) < self.clusters:
            raise BadInput(
                f"only {len(present)} classes have training images; give guided_tokens of "
                f"1 to {len(present)}."
            )
        chosen = present[
            torch.randperm(len(present), generator=generator)[: self.clusters].to(device)
        ]
        self.centroids.copy_(self.sums[chosen] / self.counts[chosen, None])  # type: ignore[index]
        self.recluster()

    after_epoch = torch.no_grad()(recluster)
