"""Further target tasks: drawn letters, flowers and sprites, and crops of real pictures.

The real pictures come with packages that the project uses anyway: two photographs with
scikit-learn, one photograph and an elevation map with matplotlib. Training and validation crops
come from other parts of them than test crops.
"""

import numpy as np

from ..errors import choose
from ..records import remember
from .drawing import BLOCK, SIZE, background, contrast, cover, draw, finish, local, mix, paint

FONTS = [
    "DejaVuSans",
    "DejaVuSans-BoldOblique",
    "DejaVuSerif",
    "DejaVuSansMono-Bold",
    "STIXGeneralItalic",
    "cmr10",
]
GLYPH = 48  # pixels of a side of a letter's mask before it is placed
# columns of a real picture, by stream
PARTS = {0: (0.0, 0.52), 1: (0.52, 0.68), 2: (0.68, 1.0), 3: (0.0, 0.52)}


def _sample(mask: np.ndarray, u: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Masks (n, G, G) interpolated linearly at u, v in [-1, 1] (n, S, S), 0 outside."""
    side = mask.shape[1]
    x, y = ((w + 1) / 2 * (side - 1) for w in (u, v))
    inside = (x >= 0) & (x <= side - 1) & (y >= 0) & (y <= side - 1)
    x0, y0 = (np.clip(w.astype(int), 0, side - 2) for w in (x, y))
    fx, fy = np.clip(x - x0, 0, 1), np.clip(y - y0, 0, 1)
    n = np.arange(len(mask))[:, None, None]
    top = mask[n, y0, x0] * (1 - fx) + mask[n, y0, x0 + 1] * fx
    low = mask[n, y0 + 1, x0] * (1 - fx) + mask[n, y0 + 1, x0 + 1] * fx
    return (top * (1 - fy) + low * fy) * inside


@remember
def _alphabet() -> np.ndarray:
    """Masks (fonts, 26, GLYPH, GLYPH) of the capital letters, each filling its square."""
    from matplotlib import get_data_path
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import TextPath

    points = (np.arange(4 * GLYPH) + 0.5) / (4 * GLYPH)
    grid = np.stack(np.meshgrid(points, 1 - points), -1).reshape(-1, 2)
    masks = []
    for font in FONTS:
        family = FontProperties(fname=f"{get_data_path()}/fonts/ttf/{font}.ttf")
        for letter in "ABCDEFGHIJKLMNOPQRSTUVWXYZ":
            path = TextPath((0, 0), letter, size=100, prop=family)
            box = path.get_extents()
            centre, side = (box.min + box.max) / 2, max(box.size)  # type: ignore[operator]
            inside = path.contains_points((grid - 0.5) * side + centre)
            masks.append(inside.reshape(GLYPH, 4, GLYPH, 4).mean((1, 3)))
    return np.array(masks).reshape(len(FONTS), 26, GLYPH, GLYPH)


def _letters(rng, labels, stream) -> np.ndarray:
    """26 classes: a small, faint, rotated capital letter in one of six fonts on any background."""
    n = len(labels)
    ground, colours = background(rng, n)
    scale = rng.uniform(3.6, 6.0, n)
    u, v = local(*rng.uniform(6.5, 17.5, (2, n)), np.deg2rad(rng.uniform(-45, 45, n)), scale)
    mask = _sample(_alphabet()[rng.integers(0, len(FONTS), n), labels], u, v) * rng.uniform(
        0.45, 0.9, (n, 1, 1)
    )
    return finish(rng, paint(ground, mask, contrast(rng, colours)), grain=0.05)


def _flowers(rng, labels, stream) -> np.ndarray:
    """40 similar classes: 4 to 8 petals, short or long, pointed or round, small or wide centre."""
    n = len(labels)
    petals, form = 4 + labels % 5, labels // 5
    depth = np.where(form % 2 == 0, 0.22, 0.42)[:, None, None]
    power = np.where(form // 2 % 2 == 0, 0.6, 1.8)[:, None, None]
    middle = np.where(form // 4 == 0, 0.24, 0.46)[:, None, None]
    ground, colours = background(rng, n)
    scale = rng.uniform(8.5, 11.0, n)
    u, v = local(*rng.uniform(10.5, 13.5, (2, n)), rng.uniform(0, 2 * np.pi, n), scale)
    radius, angle = np.hypot(u, v), np.arctan2(v, u)
    wave = np.abs(np.cos(angle * petals[:, None, None] / 2)) ** (2 * power)
    outline = 0.95 * (1 - depth * 2 * (1 - wave))
    k = scale[:, None, None]
    petal = contrast(rng, colours)
    canvas = paint(ground, cover((radius - outline) * k), petal)
    heart = contrast(rng, np.concatenate([colours, petal[:, None]], 1))
    return finish(rng, paint(canvas, cover((radius - middle * 0.95) * k), heart))


def _sprite(rng, labels, factor: str) -> np.ndarray:
    """dSprites redrawn from its factors: white square, ellipse or heart on black, with noise.

    Scale in six steps from 0.5 to 1, orientation in 40 steps of a full turn, position in 32 x 32
    steps; the label is the horizontal position or the orientation in 16 equal classes, as in VTAB.
    """
    n = len(labels)
    shape, scale = rng.integers(0, 3, n), 0.5 + 0.1 * rng.integers(0, 6, n)
    turn, place = rng.integers(0, 40, n), rng.integers(0, 32, (2, n))
    if factor == "location":
        place[0] = 2 * labels + rng.integers(0, 2, n)
    else:  # of 40 steps, class c holds those with floor(16 step / 40) = c
        steps = np.arange(40)
        for label in range(16):
            mine = labels == label
            turn[mine] = rng.choice(steps[steps * 16 // 40 == label], mine.sum())
    size = 4.6 * scale
    cx, cy = 5.5 + place / 31 * (SIZE - 11)
    u, v = local(cx, cy, turn * 2 * np.pi / 40, size)
    heart = (u**2 + v**2 * 1.15 - 0.55) ** 3 + 1.4 * u**2 * (v * 1.07) ** 3
    forms = [
        np.maximum(np.abs(u), np.abs(v)) - 0.72,
        np.hypot(u / 0.95, v / 0.5) * 0.62 - 0.62,
        np.sign(heart) * np.minimum(np.abs(heart) ** (1 / 3), 1) * 0.35,
    ]
    distance = np.choose(shape[:, None, None], forms) * size[:, None, None]
    # else some pictures come twice
    return finish(rng, cover(distance)[..., None].repeat(3, -1), grain=0.02)


def _pieces(rng, pictures, stream: int, scales) -> np.ndarray:
    """A crop (S, S, C) of each picture (H, W, C), from the columns of the stream's split.

    One pixel of the crop covers `scales` pixels of the picture.
    """
    pieces = []
    for picture in pictures:
        factor = int(rng.choice(scales))
        high, wide = picture.shape[:2]
        low, top = (round(share * wide) for share in PARTS[stream])
        side = SIZE * factor
        y, x = rng.integers(0, high - side + 1), rng.integers(low, top - side + 1)
        piece = picture[y : y + side, x : x + side]
        pieces.append(piece.reshape(SIZE, factor, SIZE, factor, -1).mean((1, 3)))
    return np.array(pieces)


@remember
def _photographs() -> tuple[np.ndarray, ...]:
    """Upper and lower halves (H, W, 3) of three photographs, in [0, 1]."""
    from matplotlib.cbook import get_sample_data
    from PIL import Image
    from sklearn.datasets import load_sample_images

    with get_sample_data("grace_hopper.jpg") as file:  # type: ignore[union-attr]
        third = np.asarray(Image.open(file).convert("RGB"))
    halves = [np.array_split(picture / 255, 2) for picture in (*load_sample_images().images, third)]
    return tuple(half for pair in halves for half in pair)


def _photos(rng, labels, stream) -> np.ndarray:
    """6 classes: the half of one of three photographs that a crop is from, colours mixed."""
    pictures = _photographs()
    pieces = _pieces(rng, [pictures[label] for label in labels], stream, (2, 3))
    mix = rng.dirichlet(np.ones(3), (len(labels), 3))
    return finish(rng, np.einsum("nij,nhwj->nhwi", mix, pieces), grain=0.0)


@remember
def _elevation() -> np.ndarray:
    """Elevations (H, W) in units of the grid spacing."""
    from matplotlib.cbook import get_sample_data

    with get_sample_data("jacksboro_fault_dem.npz") as data:  # type: ignore[union-attr]
        return data["elevation"].astype(float) / 90.0  # type: ignore[index]  # SRTM: about 90 m from point to point


def _relief(rng, labels, stream) -> np.ndarray:
    """8 classes: the direction of the sun on a crop of real terrain."""
    n = len(labels)
    slopes = np.stack(np.gradient(_elevation()), -1)
    down, right = np.moveaxis(_pieces(rng, [slopes] * n, stream, (1, 2)), -1, 0) * rng.uniform(
        3, 6, (n, 1, 1)
    )
    azimuth = np.deg2rad(45 * labels + rng.uniform(-8, 8, n))[:, None, None]
    height = np.deg2rad(rng.uniform(35, 55, n))[:, None, None]
    light = np.sin(height) - np.cos(height) * (right * np.cos(azimuth) + down * np.sin(azimuth))
    light = np.clip(light / np.sqrt(1 + right**2 + down**2), 0, 1)
    dark, bright = 0.4 * rng.random((n, 3)), 0.6 + 0.4 * rng.random((n, 3))
    return finish(rng, mix(dark, bright, light))


DRAWERS = {
    "letters": (26, _letters),
    "flowers": (40, _flowers),
    "dsprites_location": (16, lambda rng, labels, stream: _sprite(rng, labels, "location")),
    "dsprites_orientation": (16, lambda rng, labels, stream: _sprite(rng, labels, "orientation")),
    "photos": (6, _photos),
    "relief": (8, _relief),
}


def pictures(kind: str, n: int, seed: int, stream: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Images (n, S, S, 3) uint8 and labels (n,) int64 of a target task, here or in `drawing`.

    Streams 0, 1 and 2 are train, val and test, 3 the larger training pool. Labels are balanced as
    in `drawing.draw`, and equal arguments give equal bytes.

    Raises:
        BadInput: the kind is unknown.
    """
    if kind not in DRAWERS:
        return draw(
            choose("target", kind, [*DRAWERS, "position", "count", "orientation", "texture"]),
            n,
            seed,
            stream,
        )
    classes, drawer = DRAWERS[kind]
    key = [seed, stream, *kind.encode()]
    order = np.random.Generator(np.random.PCG64([*key, 0]))
    labels = np.concatenate([order.permutation(classes) for _ in range(-(-n // classes))])[
        :n
    ].astype(np.int64)
    parts = [
        drawer(np.random.Generator(np.random.PCG64([*key, 1 + i])), labels[at : at + BLOCK], stream)
        for i, at in enumerate(range(0, n, BLOCK))
    ]
    return np.concatenate(parts), labels
