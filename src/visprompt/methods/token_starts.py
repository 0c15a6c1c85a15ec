"""Prompts initialised with tokens of the task's training images (SPT Sec. 3.3-3.4)."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import torch

from ..errors import BadInput, choose
from ..models.backbones import Backbone
from ..models.blocks import Hooks
from .clustering import streamed_kmeans
from .prompts import uniform_

STRATEGIES = ["random", "mean", "max", "k-means", "uniform"]
SOURCES = ["same", "first", "last"]
BATCH = 32  # images in one forward pass, SPT's mini-batch


class AllTokens(Hooks):
    """The plain network; the last block computes every token."""

    trims = False


def check_start(settings: Any) -> None:
    """Check the settings of an initialisation by tokens.

    Raises:
        BadInput: an unknown strategy or source, or an impossible number of images.
    """
    choose("start", settings.start, STRATEGIES)
    choose("source", settings.source, SOURCES)
    if settings.images is not None and settings.images < 1:
        raise BadInput(
            f"images must be 1 or more, or None for the strategy's own number, not "
            f"{settings.images}."
        )


def start_prompts(
    prompts: Sequence[torch.Tensor],
    backbone: Backbone,
    images: torch.Tensor,
    settings: Any,
    bound: float,
    generator: torch.Generator,
) -> None:
    """Fill prompts in place: a list with one (N_p, D) per prompted block, from block 0 up.

    Images are (n, 3, H, W), normalised. Source "same" takes the tokens that enter the prompt's own
    block; "first" those that enter block 0 and "last" those that leave the last block, for all
    prompts (Table S2). Tokens are patches with their position (Eq. 1), without class token; SPT's
    code takes those of block 0 without position.
    """
    if settings.start == "uniform":  # VPT's, the baseline of Tables 4 and S2
        for prompt in prompts:
            uniform_(prompt, bound, generator)
        return
    levels = list(range(len(prompts)))
    if settings.source != "same":
        levels = [0 if settings.source == "first" else backbone.depth]
    device = next(backbone.parameters()).device
    count, tokens = len(prompts[0]), backbone.shapes()[0][0] - backbone.prefix
    wanted = settings.images or (BATCH if settings.start in ("mean", "max") else len(images))
    drawn = torch.randperm(len(images), generator=generator)[:wanted]
    if len(drawn) * tokens < count:
        raise BadInput(
            f"{len(drawn)} images have {len(drawn) * tokens} tokens, fewer than the "
            f"{count} prompts."
        )
    if settings.start == "random":
        places, needed = draw_places(len(drawn), tokens, count, len(levels), generator)
        drawn = drawn[needed]

    def stream() -> Iterator[list[torch.Tensor]]:
        return (
            level_tokens(backbone, images[part].to(device), levels) for part in drawn.split(BATCH)
        )

    if settings.start == "random":
        starts = chosen_tokens(stream, places)
    else:
        starts = pooled_tokens(
            stream, len(drawn) * tokens, count, "amax" if settings.start == "max" else "sum"
        )
        # Eq. 9-10 start from a uniform partition, which mean pooling is
        if settings.start == "k-means":
            starts = streamed_kmeans(stream, starts, settings.iterations, "k-means over all tokens")
    with torch.no_grad():
        for prompt, start in zip(prompts, starts * (len(prompts) // len(starts)), strict=True):
            prompt.copy_(start)


@torch.no_grad()
def level_tokens(backbone: Backbone, images: torch.Tensor, levels: list[int]) -> list[torch.Tensor]:
    """Images (B, 3, H, W) -> for each level l the patches (B * M, D) entering block l.

    Level L: those leaving the last block.
    """
    kept = []
    kept.append(backbone.run(backbone.stem(images), AllTokens(), stop=max(levels), keep=kept))
    return [kept[level][:, backbone.prefix :].flatten(0, 1) for level in levels]


def draw_places(
    images: int, tokens: int, count: int, levels: int, generator: torch.Generator
) -> tuple[list, torch.Tensor]:
    """Draw the tokens to use before any image is read.

    Each level's draw is uniform over its whole pool, without replacement. All levels draw from the
    same images, at most `count` of them: the places within the images are those of the first level,
    shifted by a random number per level.

    Returns:
        For each level the places (count,) in the flat stream of tokens, and the indices of the
        images that are needed.
    """
    seed = torch.randint(2**62, (), generator=generator).item()
    drawn = torch.from_numpy(
        np.random.default_rng(seed).choice(images * tokens, count, replace=False)  # type: ignore[arg-type]
    )
    needed, place = (drawn // tokens).unique(return_inverse=True)
    moved = torch.randint(tokens, (levels,), generator=generator)
    return [place * tokens + (drawn + move) % tokens for move in moved], needed


def chosen_tokens(
    stream: Callable[[], Iterable[list[torch.Tensor]]], pairs: Sequence[torch.Tensor]
) -> list[torch.Tensor]:
    """The tokens at given places of a flat stream, without holding the pool in memory."""
    tokens, seen = None, 0
    for batch in stream():
        tokens = tokens or [
            part.new_empty(len(places), part.shape[1]) for part, places in zip(batch, pairs)
        ]
        for part, places, result in zip(batch, pairs, tokens, strict=True):
            here = (places >= seen) & (places < seen + len(part))
            result[here.to(part.device)] = part[(places[here] - seen).to(part.device)]
        seen += len(batch[0])
    return tokens


def pooled_tokens(
    stream: Callable[[], Iterable[list[torch.Tensor]]], total: int, count: int, how: str
) -> list[torch.Tensor]:
    """Mean or maximum over non-overlapping windows of floor(total / count) tokens (Sec. 3.4)."""
    window, pooled, seen = total // count, None, 0
    for batch in stream():
        start = 0.0 if how == "sum" else float("-inf")
        pooled = pooled or [part.new_full((count + 1, part.shape[1]), start) for part in batch]
        place = (
            ((seen + torch.arange(len(batch[0]))) // window).clamp_max(count).to(batch[0].device)
        )
        # what is left over goes to a row that is dropped
        for part, result in zip(batch, pooled, strict=True):
            result.index_reduce_(0, place, part, "amax") if how == "amax" else result.index_add_(
                0, place, part
            )
        seen += len(batch[0])
    return [result[:count] / (1 if how == "amax" else window) for result in pooled]
