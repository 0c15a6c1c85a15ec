"""Drawn segmentation images: two objects on any background, one perhaps occluding the other.

The class of an object depends on the task: its contour, or its fill. A pixel that an edge crosses,
with a quarter to three quarters inside, is ignored, as in PASCAL's annotations.
"""

import numpy as np

from ..errors import choose
from .drawing import BLOCK, FILLS, SIZE, _filled, background, contrast, cover, finish, local, paint
from .outlines import contour_distance

IGNORED = 255
SHAPES = {"disc": 0, "bar": 5, "star": 7, "trefoil": 15}
CLASSES = {  # task -> its classes; the ground is the first
    "scenes_shape": ("ground", *SHAPES),
    "scenes_fill": ("ground", *FILLS),
}


def _scenes(rng, n: int, kind: str) -> tuple[np.ndarray, np.ndarray]:
    """Images (n, S, S, 3) uint8 and masks (n, S, S) uint8."""
    ground, colours = background(rng, n)
    canvas, masks = ground, np.zeros((n, SIZE, SIZE), np.uint8)
    edges = np.zeros((n, SIZE, SIZE), bool)
    # two objects of a picture are not alike
    shapes = rng.permuted(np.tile(np.arange(len(SHAPES)), (n, 1)), axis=1)
    fills = rng.permuted(np.tile(np.arange(len(FILLS)), (n, 1)), axis=1)
    if kind == "scenes_shape":
        fills[:] = 0
    turn, apart = rng.uniform(0, 2 * np.pi, n), rng.uniform(5.0, 7.5, n)
    for number, side in enumerate((-1, 1)):  # the second lies before the first
        scale = rng.uniform(4.5, 6.0, n)
        cx, cy = (SIZE / 2 + side * apart * f(turn) for f in (np.cos, np.sin))
        u, v = local(cx, cy, np.deg2rad(rng.uniform(-34, 34, n)), scale)
        shape, fill = np.array([*SHAPES.values()])[shapes[:, number]], fills[:, number]
        distance = contour_distance(shape, u, v)
        inside = cover(distance * scale[:, None, None])
        colour = contrast(rng, colours)
        # nothing shines through an outlined or pierced one
        under = paint(canvas, inside, ground) if number else canvas
        canvas = paint(under, _filled(fill, distance, u, v, scale), colour)
        label = 1 + (shapes if kind == "scenes_shape" else fills)[:, number]
        masks = np.where(inside > 0.5, label[:, None, None], masks).astype(np.uint8)
        edges = (edges & (inside < 0.25)) | ((inside >= 0.25) & (inside <= 0.75))
        colours = np.concatenate([colours, colour[:, None]], 1)
    return finish(rng, canvas), np.where(edges, IGNORED, masks).astype(np.uint8)


def scenes(kind: str, n: int, seed: int, stream: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Draw n images (n, S, S, 3) uint8 and masks (n, S, S) uint8; equal arguments give equal bytes.

    Args:
        kind: a task of CLASSES.
        stream: 0, 1 and 2 are train, val and test.

    Raises:
        BadInput: the kind is unknown.
    """
    key = [seed, stream, *choose("drawn segmentation task", kind, CLASSES).encode()]
    starts = range(0, n, BLOCK)
    parts = [
        _scenes(np.random.Generator(np.random.PCG64([*key, i])), min(BLOCK, n - at), kind)
        for i, at in enumerate(starts)
    ]
    pictures, masks = (np.concatenate(part) for part in zip(*parts, strict=True))
    return pictures, masks
