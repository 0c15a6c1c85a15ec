"""Dead leaves: drawn images with occlusion, to pretrain the masked and contrastive backbones.

Opaque objects of all sizes drawn over each other have edges, smooth areas and occlusions as
photographs do (the dead leaves model; Lee, Mumford and Huang, IJCV 2001). Backgrounds are smooth:
the content of a hidden patch is then decided by outlines, not by the phase of a pattern or by
noise, which cannot be predicted.
"""

import numpy as np

from .drawing import (
    BLOCK,
    SIZE,
    SOURCE_CLASSES,
    background,
    contrast,
    cover,
    finish,
    local,
    paint,
    source_mask,
)
from .outlines import CONTOURS, contour_distance

SOFT = 4  # the first kinds of ground: plain, two gradients, clouds
BEHIND, OFTEN = 2, 0.35  # things behind the one in front, and how often each is there


def _leaves(rng, labels: np.ndarray) -> np.ndarray:
    """A source class in front, and up to two solid contours behind it, the smaller one nearer."""
    n = len(labels)
    canvas, colours = background(rng, n, SOFT)
    sizes = -np.sort(
        -rng.uniform(2.5, 10.0, (BEHIND, n)) * (rng.random((BEHIND, n)) < OFTEN), axis=0
    )
    for scale in sizes:
        u, v = local(
            *rng.uniform(0, SIZE, (2, n)), rng.uniform(0, 2 * np.pi, n), np.maximum(scale, 1e-3)
        )
        distance = contour_distance(rng.integers(0, CONTOURS, n), u, v) * scale[:, None, None]
        first = contrast(rng, colours, 3)
        shade = background(rng, n, 2)[0] - 0.5  # plain, or lit from a side
        mask = cover(distance) * (scale > 0)[:, None, None]
        canvas = paint(canvas, mask, np.clip(first[:, None, None] + 0.3 * shade, 0, 1))
        colours = np.concatenate([colours[:, -2:], first[:, None]], 1)
    mask = source_mask(rng, labels)
    return finish(rng, paint(canvas, mask, contrast(rng, colours)))


def draw_leaves(n: int, seed: int, stream: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Images (n, S, S, 3) uint8 and source labels (n,) int64, in the order of `drawing.draw`."""
    order = np.random.Generator(np.random.PCG64([seed, stream, *b"leaves", 0]))
    turns = [order.permutation(SOURCE_CLASSES) for _ in range(-(-n // SOURCE_CLASSES))]
    labels = np.concatenate(turns)[:n].astype(np.int64)
    starts = range(0, n, BLOCK)
    streams = (
        np.random.Generator(np.random.PCG64([seed, stream, *b"leaves", 1 + i]))
        for i in range(len(starts))
    )
    return np.concatenate(
        [_leaves(rng, labels[at : at + BLOCK]) for rng, at in zip(streams, starts)]
    ), labels
