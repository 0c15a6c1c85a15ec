"""Small images drawn by formula: pretraining data of the embedded backbones, and target tasks.

Every picture is 24 x 24 RGB, drawn in float64 and rounded to bytes at the end, so that machines
whose sine differs in the last bit still give the same bytes. All chance comes from one `numpy`
generator per block of pictures, made from the seed; there is no global state.

A mask is an array (n, S, S) in [0, 1]: how much of each pixel the drawn thing covers. Lengths are
in pixels, with pixel centres at 0.5, 1.5, ...; angles are in radians, counted clockwise because y
points down.
"""

from collections.abc import Callable

import numpy as np

from ..errors import choose
from .outlines import CONTOURS, GLYPHS, contour_distance, glyph_distance

SIZE = 24
FILLS = ("solid", "outline", "striped", "pierced")
SOURCE_CLASSES = CONTOURS * len(FILLS) + GLYPHS  # 112
BLOCK = 500  # pictures drawn at a time: the arrays stay in the cache
# images (n, S, S, 3) uint8, labels (n,), masks (n, S, S)
Drawn = tuple[np.ndarray, np.ndarray, np.ndarray]


def local(cx, cy, angle, scale) -> tuple[np.ndarray, np.ndarray]:
    """Pixel centres (n, S, S) seen from objects at (cx, cy), turned by angle, in units of scale."""
    grid = np.arange(SIZE) + 0.5
    x = grid[None, None, :] - cx[:, None, None]
    y = grid[None, :, None] - cy[:, None, None]
    c, s, k = (f(v)[:, None, None] for f, v in ((np.cos, angle), (np.sin, angle), (np.abs, scale)))
    return (c * x + s * y) / k, (c * y - s * x) / k


def cover(distance: np.ndarray) -> np.ndarray:
    """Share of a pixel inside an edge at a signed distance in pixels (negative inside)."""
    return np.clip(0.5 - distance, 0.0, 1.0)


def _soft_noise(rng, n: int, cells: int) -> np.ndarray:
    """Smooth noise (n, S, S): values on a coarse lattice, interpolated linearly."""
    coarse = rng.random((n, cells + 1, cells + 1))
    at = np.arange(SIZE) * (cells / SIZE)
    low, part = at.astype(int), at % 1.0
    rows = coarse[:, low] * (1 - part)[None, :, None] + coarse[:, low + 1] * part[None, :, None]
    return rows[:, :, low] * (1 - part) + rows[:, :, low + 1] * part


def mix(first: np.ndarray, second: np.ndarray, share: np.ndarray) -> np.ndarray:
    """Colours (n, 3) blended; `share` (n, S, S) is that of the second -> (n, S, S, 3)."""
    return first[:, None, None, :] + (second - first)[:, None, None, :] * share[..., None]


def paint(canvas: np.ndarray, mask: np.ndarray, colour: np.ndarray) -> np.ndarray:
    """Blend colour (n, 3) or (n, S, S, 3) over canvas (n, S, S, 3) by the mask (n, S, S)."""
    colour = colour[:, None, None, :] if colour.ndim == 2 else colour
    return canvas + (colour - canvas) * mask[..., None]


def background(rng, n: int, kinds: int = 8) -> tuple[np.ndarray, np.ndarray]:
    """Backgrounds (n, S, S, 3) of `kinds` kinds, and their two colours (n, 2, 3)."""
    first = rng.random((n, 3))
    second = first + (rng.random((n, 3)) - first) * rng.uniform(0.2, 0.55, (n, 1))
    u, v = local(*rng.uniform(0, SIZE, (2, n)), rng.uniform(0, 2 * np.pi, n), np.ones(n))
    period = rng.uniform(3.0, 8.0, n)[:, None, None]
    p, q = 2 * np.pi * u / period, 2 * np.pi * v / period
    shares = (
        np.zeros_like(u),  # plain
        np.clip(0.5 + u / SIZE, 0, 1),  # gradient
        np.clip(np.hypot(u, v) / SIZE, 0, 1),  # radial gradient
        _soft_noise(rng, n, 5),  # clouds
        rng.random((n, SIZE, SIZE)),  # grain
        np.clip(0.5 + 2 * np.sin(p), 0, 1),  # stripes
        np.clip(0.5 + 3 * np.sin(p) * np.sin(q), 0, 1),  # checks
        np.clip(np.cos(p) + np.cos(q) - 0.4, 0, 1),  # dots
    )
    kind = rng.integers(0, kinds, n)
    share = np.choose(kind[:, None, None], shares)
    return mix(first, second, share), np.stack([first, second], axis=1)


def contrast(rng, others: np.ndarray, tries: int = 6) -> np.ndarray:
    """Random colours (n, 3): of some draws the one farthest from the colours others (n, k, 3)."""
    draws = rng.random((len(others), tries, 3))
    nearest = np.abs(draws[:, :, None] - others[:, None]).sum(-1).min(-1)
    return draws[np.arange(len(others)), nearest.argmax(1)]


def finish(rng, canvas: np.ndarray, grain: float = 0.03) -> np.ndarray:
    """Canvas in [0, 1] plus a little pixel noise -> uint8."""
    return np.rint(255 * np.clip(canvas + rng.normal(0, grain, canvas.shape), 0, 1)).astype(
        np.uint8
    )


def _filled(fill, distance, u, v, scale) -> np.ndarray:
    """Mask of contours with a fill each (see FILLS); distance, u and v in units of scale."""
    k = scale[:, None, None]
    solid = cover(distance * k)
    stripes = np.clip(0.5 + 2.5 * np.sin(2 * np.pi * u * k / 3.6), 0, 1)
    hole = cover((np.hypot(u, v) - 0.36) * k)
    inner = cover(distance * k + 1.5)
    ring = solid - inner
    kinds = (solid, ring, np.maximum(ring, solid * stripes), solid * (1 - hole))
    return np.choose(fill[:, None, None], kinds)


def source_mask(rng, labels: np.ndarray) -> np.ndarray:
    """Masks (n, S, S) of source classes (n,), with random position, rotation and size."""
    n = len(labels)
    scale = rng.uniform(6.0, 9.5, n)
    cx, cy = rng.uniform(9.0, 15.0, (2, n))
    u, v = local(cx, cy, np.deg2rad(rng.uniform(-34, 34, n)), scale)
    stroke = rng.uniform(0.75, 1.15, n)[:, None, None]
    closed = labels < CONTOURS * len(FILLS)
    shape, fill = source_parts(labels)
    mask = np.empty_like(u)
    d = contour_distance(shape[closed], u[closed], v[closed])
    mask[closed] = _filled(fill[closed], d, u[closed], v[closed], scale[closed])
    strokes = ~closed
    d = (
        glyph_distance(shape[strokes] - CONTOURS, u[strokes], v[strokes])
        * scale[strokes, None, None]
    )
    mask[strokes] = cover(d - stroke[strokes])
    return mask


def _source(rng, labels: np.ndarray) -> Drawn:
    """112 classes: 20 contours x 4 fills, then 32 glyphs, on any background, position and size."""
    ground, colours = background(rng, len(labels))
    mask = source_mask(rng, labels)
    return finish(rng, paint(ground, mask, contrast(rng, colours))), labels, mask


def source_parts(labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Shape (0..51: contours, then glyphs) and fill (0..3; 4 for glyphs) of source classes (n,)."""
    closed = labels < CONTOURS * len(FILLS)
    shape = np.where(closed, labels // len(FILLS), labels - CONTOURS * (len(FILLS) - 1))
    return shape, np.where(closed, labels % len(FILLS), len(FILLS))


def _position(rng, labels: np.ndarray) -> Drawn:
    """16 classes: the cell of a 4 x 4 grid, row by row, that holds one shape's centre."""
    n = len(labels)
    ground, colours = background(rng, n)
    cell = SIZE / 4
    cx = (labels % 4 + 0.5) * cell + rng.uniform(-2.7, 2.7, n)
    cy = (labels // 4 + 0.5) * cell + rng.uniform(-2.7, 2.7, n)
    scale = rng.uniform(1.8, 3.4, n)
    u, v = local(cx, cy, rng.uniform(0, 2 * np.pi, n), scale)
    mask = cover(contour_distance(rng.integers(0, CONTOURS, n), u, v) * scale[:, None, None])
    return finish(rng, paint(ground, mask, contrast(rng, colours))), labels, mask


def _count(rng, labels: np.ndarray) -> Drawn:
    """6 classes: one to six small shapes of one colour that do not touch."""
    n = len(labels)
    ground, colours = background(rng, n)
    # 3 x 3 cells of 8 pixels; a few are used
    cells = rng.permuted(np.tile(np.arange(9), (n, 1)), axis=1)
    # disc, triangle, square, pentagon: no thin parts
    shape = np.array([0, 3, 4, 6])[rng.integers(0, 4, n)]
    mask = np.zeros((n, SIZE, SIZE))
    for i in range(6):
        centre = (
            8 * np.stack([cells[:, i] % 3, cells[:, i] // 3]) + 4 + rng.uniform(-0.6, 0.6, (2, n))
        )
        scale = rng.uniform(1.5, 2.2, n)
        u, v = local(*centre, rng.uniform(0, 2 * np.pi, n), scale)
        item = cover(contour_distance(shape, u, v) * scale[:, None, None])
        mask = np.maximum(mask, item * (i <= labels)[:, None, None])
    return finish(rng, paint(ground, mask, contrast(rng, colours))), labels, mask


def _orientation(rng, labels: np.ndarray) -> Drawn:
    """8 classes: direction, in steps of 22.5 degrees, of one bar beside two discs of its colour."""
    n = len(labels)
    ground, colours = background(rng, n)
    colour = contrast(rng, colours)
    angle = np.deg2rad(22.5 * labels + rng.uniform(-6, 6, n))
    u, v = local(*rng.uniform(5, SIZE - 5, (2, n)), angle, np.ones(n))
    half = rng.uniform(3.8, 5.5, n)[:, None, None]
    bar = cover(np.hypot(u - np.clip(u, -half, half), v) - 1.0)
    canvas = ground
    for _ in range(2):
        x, y = local(*rng.uniform(0, SIZE, (2, n)), np.zeros(n), np.ones(n))
        disc = cover(np.hypot(x, y) - rng.uniform(1.0, 2.0, n)[:, None, None])
        canvas = paint(canvas, disc * (1 - bar), colour)
    return finish(rng, paint(canvas, bar, colour), grain=0.05), labels, bar


def _texture(rng, labels: np.ndarray) -> Drawn:
    """8 classes: the texture of a large shape (see the comments), at any scale and rotation."""
    n = len(labels)
    ground, colours = background(rng, n)
    first = contrast(rng, colours)
    second = first + (contrast(rng, first[:, None]) - first) * rng.uniform(0.6, 1.0, (n, 1))
    centre, scale = rng.uniform(10, 14, (2, n)), rng.uniform(10.0, 13.0, n)
    u, v = local(*centre, rng.uniform(0, 2 * np.pi, n), scale)
    mask = cover(contour_distance(rng.integers(0, CONTOURS, n), u, v) * scale[:, None, None])
    period = rng.uniform(4.0, 6.0, n)
    u, v = local(*rng.uniform(6, 18, (2, n)), rng.uniform(0, 2 * np.pi, n), period / (2 * np.pi))
    shares = (
        0.5 + 2 * np.sin(u),  # stripes
        0.5 + 2 * np.sin(u + 1.6 * np.sin(v / 1.6)),  # waves
        0.5 + 3 * np.sin(u) * np.sin(v),  # checks
        1.5 * (np.cos(u) + np.cos(v)) - 0.7,  # dots
        0.5 + 2 * np.sin(np.hypot(u, v)),  # rings
        3 * (np.maximum(np.cos(u), np.cos(v)) - 0.6),  # net
        rng.random((n, SIZE, SIZE)) * 2 - 0.5,  # grain
        4 * _soft_noise(rng, n, 7) - 1.5,  # patches
    )
    share = np.choose(labels[:, None, None], [np.clip(s, 0, 1) for s in shares])
    return finish(rng, paint(ground, mask, mix(first, second, share))), labels, mask


DRAWERS: dict[str, tuple[int, Callable]] = {
    "source": (SOURCE_CLASSES, _source),
    "position": (16, _position),
    "count": (6, _count),
    "orientation": (8, _orientation),
    "texture": (8, _texture),
}

# Kinds are seeded by name, so that a new one changes no picture of the others; the first five keep
# their numbers.
NUMBERS = {"count": 0, "orientation": 1, "position": 2, "source": 3, "texture": 4}


def draw(kind: str, n: int, seed: int, stream: int = 0, with_masks: bool = False):
    """Draw n images of a kind; the same kind, n, seed and stream give the same bytes.

    Labels are balanced: each class comes once, in random order, before any comes again.

    Args:
        kind: "source", "position", "count", "orientation" or "texture".
        n: number of images.
        seed: any non-negative integer.
        stream: different streams of one seed are independent (train, val, test).
        with_masks: also return the masks of what was drawn.

    Returns:
        images (n, S, S, 3) uint8, labels (n,) int64, and, with `with_masks`, masks (n, S, S)
        float64.

    Raises:
        BadInput: the kind is unknown.
    """
    classes, drawer = DRAWERS[choose("drawing", kind, DRAWERS)]
    key = [seed, stream, *([NUMBERS[kind]] if kind in NUMBERS else kind.encode())]
    order = np.random.Generator(np.random.PCG64([*key, 0]))
    turns = [order.permutation(classes) for _ in range(-(-n // classes))]
    labels = np.concatenate(turns)[:n].astype(np.int64) if turns else np.zeros(0, np.int64)
    parts = [
        drawer(np.random.Generator(np.random.PCG64([*key, 1 + i])), labels[at : at + BLOCK])
        for i, at in enumerate(range(0, max(n, 1), BLOCK))
    ]
    images, labels, masks = (np.concatenate(p) for p in zip(*parts, strict=True))
    return (images, labels, masks) if with_masks else (images, labels)
