"""The shapes that drawing.py fills: 20 closed contours and 32 glyphs, as signed distances."""

import numpy as np

CONTOURS = 20
GLYPHS = 32
ANGLES = 720  # entries of a contour's table of radii: half a degree, far below a pixel


def _polygon(*corners: tuple[float, float]) -> np.ndarray:
    """Radii of a polygon, from its centre of mass, in the directions ANGLES."""
    p = np.array(corners, float)
    q = np.roll(p, -1, axis=0)
    cross = p[:, 0] * q[:, 1] - q[:, 0] * p[:, 1]
    p = p - ((p + q) * cross[:, None]).sum(0) / (3 * cross.sum())
    edge = np.roll(p, -1, axis=0) - p
    t = _directions()
    ray = np.stack([np.cos(t), np.sin(t)], -1)[:, None]  # (ANGLES, 1, 2)
    det = ray[..., 0] * edge[:, 1] - ray[..., 1] * edge[:, 0]
    det = np.where(np.abs(det) < 1e-9, 1e-9, det)
    far = (p[:, 0] * edge[:, 1] - p[:, 1] * edge[:, 0]) / det
    along = (p[:, 0] * ray[..., 1] - p[:, 1] * ray[..., 0]) / det
    hit = (far > 0) & (along >= -1e-6) & (along <= 1 + 1e-6)
    return np.where(hit, far, 0).max(1)


def _directions() -> np.ndarray:
    return (np.arange(ANGLES) + 0.5) * (2 * np.pi / ANGLES)


def _ring(radii: tuple[float, ...], turn: float = -90.0) -> np.ndarray:
    """A polygon with corners at equal angles and these radii."""
    t = np.deg2rad(turn) + np.arange(len(radii)) * 2 * np.pi / len(radii)
    return _polygon(*zip(radii * np.cos(t), radii * np.sin(t), strict=True))


def _radii() -> np.ndarray:
    """Radii (CONTOURS, ANGLES); every contour has the area of a disc of radius 0.8."""
    t = _directions()
    half = np.linspace(0, np.pi, 40)
    drop = np.linspace(0, 2 * np.pi, 60, endpoint=False)
    table = np.stack(
        [
            np.ones(ANGLES),  # disc
            1 / np.hypot(np.cos(t), np.sin(t) / 0.5),  # lying ellipse
            1 / np.hypot(np.cos(t) / 0.5, np.sin(t)),  # standing ellipse
            _ring((1,) * 3),  # triangle
            _ring((1,) * 4, turn=45),  # square
            _polygon((-1, -0.42), (1, -0.42), (1, 0.42), (-1, 0.42)),  # lying bar
            _ring((1,) * 5),  # pentagon
            _ring((1, 0.42) * 4),  # star of four
            _ring((1, 0.45) * 5),  # star of five
            _ring((1, 0.62) * 8),  # star of eight
            _ring((1, 0.38) * 3, turn=90),  # star of three, a tip below
            _polygon((-0.8, -1), (0.8, -1), (0.2, 0), (0.8, 1), (-0.8, 1), (-0.2, 0)),  # hourglass
            _polygon(
                *zip(np.sin(drop) * np.sin(drop / 2) ** 1.5, -np.cos(drop), strict=True)
            ),  # drop
            _polygon(*zip(np.cos(half), np.sin(half), strict=True)),  # half disc, round below
            _polygon(
                *zip(np.sin(half), np.cos(half), strict=True)
            ),  # half disc, round to the right
            1 + 0.42 * np.cos(3 * t - np.pi / 2),  # trefoil
            1 + 0.38 * np.cos(4 * t),  # quatrefoil
            _polygon(
                (0, -1), (1, 0.1), (0.4, 0.1), (0.4, 1), (-0.4, 1), (-0.4, 0.1), (-1, 0.1)
            ),  # arrow
            _polygon((-0.9, -1), (-0.1, -1), (-0.1, 0.2), (0.9, 0.2), (0.9, 1), (-0.9, 1)),  # L
            _polygon(
                (-1, -1),
                (1, -1),
                (1, -0.2),
                (0.4, -0.2),
                (0.4, 1),
                (-0.4, 1),
                (-0.4, -0.2),
                (-1, -0.2),
            ),  # T
        ]
    )
    return table * (0.8 / np.sqrt((table**2).mean(1, keepdims=True)))


RADII = _radii()
_STEEP = np.clip(
    (np.roll(RADII, -1, 1) - np.roll(RADII, 1, 1)) * (ANGLES / (4 * np.pi)) / RADII, -3, 3
)
LEAN = 1 / np.sqrt(1 + _STEEP**2)  # from radial to perpendicular distance


def _glyph_strokes() -> np.ndarray:
    """Strokes (GLYPHS, 4, 4) as (x0, y0, x1, y1): four linked steps on a 3 x 3 lattice."""
    rng = np.random.Generator(np.random.PCG64(2024))
    seen, glyphs = set(), []
    while len(glyphs) < GLYPHS:
        points = [int(rng.integers(9))]
        while len(points) < 5:
            near = [
                k
                for k in range(9)
                if k != points[-1]
                and max(abs(k % 3 - points[-1] % 3), abs(k // 3 - points[-1] // 3)) <= 1
            ]
            points.append(int(rng.choice(near)))
        strokes = frozenset(frozenset(pair) for pair in zip(points, points[1:], strict=False))
        wide = {p % 3 for p in points} == {0, 1, 2} and {p // 3 for p in points} == {0, 1, 2}
        if not wide or len(strokes) < 4 or strokes in seen:
            continue
        seen.add(strokes)
        at = np.array([(p % 3 - 1, p // 3 - 1) for p in points], float) * 0.8
        glyphs.append(np.concatenate([at[:-1], at[1:]], axis=1))
    return np.stack(glyphs)


STROKES = _glyph_strokes()


def contour_distance(kind: np.ndarray, u: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Signed distance (n, S, S), negative inside, of points (u, v) to contours kind (n,)."""
    index = (
        np.floor(np.mod(np.arctan2(v, u), 2 * np.pi) * (ANGLES / (2 * np.pi))).astype(int) % ANGLES
    )
    row = kind[:, None, None]
    return (np.hypot(u, v) - RADII[row, index]) * LEAN[row, index]


def glyph_distance(kind: np.ndarray, u: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Distance (n, S, S) of points (u, v) to the nearest stroke of glyphs kind (n,)."""
    nearest = np.full(u.shape, np.inf)
    for stroke in STROKES[kind].transpose(1, 2, 0)[..., None, None]:  # 4 of (4, n, 1, 1)
        x0, y0, dx, dy = stroke[0], stroke[1], stroke[2] - stroke[0], stroke[3] - stroke[1]
        along = np.clip(((u - x0) * dx + (v - y0) * dy) / (dx**2 + dy**2), 0, 1)
        nearest = np.minimum(nearest, np.hypot(u - x0 - along * dx, v - y0 - along * dy))
    return nearest
