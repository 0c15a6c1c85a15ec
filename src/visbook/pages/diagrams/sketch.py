"""The canvas of a picture, and the few things drawn on it. Lengths are inches of a page 7 inches,
or 700 pixels, wide."""

from collections.abc import Callable

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Circle, FancyArrowPatch, FancyBboxPatch, Polygon, Rectangle

from .. import plots

WIDTH = 7.0
INK, EDGE, FROZEN, PATCH = "#1d252b", "#5b6770", "#eef2f6", "#b4c0ca"
TRAINED, COMPUTED, CLASS = plots.PALETTE["ap"], "#fbdcc4", "#0072b2"
GROUPS = [
    ("o", "#009e73"),
    ("^", "#cc79a7"),
    ("D", "#56b4e9"),
]  # clusters of classes: marker and colour
KEY = {
    "trained": "trained",
    "frozen": "frozen",
    "class": "class token",
    "patch": "patch token",
    "computed": "computed prompt",
    "dropped": "not used",
}
TOKEN, STEP = 0.16, 0.2

RECIPES: dict[str, Callable[[], Figure]] = {}


def picture(name: str):
    """Enter a recipe under a method's slug, or under the id of the artifact it is the counterpart
    of."""

    def enter(recipe):
        RECIPES[name] = recipe
        return recipe

    return enter


class Sketch:
    """A white canvas and the few things drawn on it; places are (x, y) of a thing's centre, in
    inches."""

    def __init__(self, height: float):
        self.figure = Figure(figsize=(WIDTH, height), facecolor="white", layout="none")
        self.ax = self.figure.add_axes([0, 0, 1, 1])
        self.ax.set(xlim=(0, WIDTH), ylim=(0, height))
        self.ax.axis("off")
        self.ax.add_patch(Rectangle((0, 0), WIDTH, height, fc="white", ec="none", gid="canvas"))
        self.seen = set()

    def finish(self) -> Figure:
        """Add the key of what was used, and hand over the figure."""
        used = [kind for kind in KEY if kind in self.seen]
        widths = [0.35 + 0.077 * len(KEY[kind]) for kind in used]
        x = (WIDTH - sum(widths)) / 2
        for kind, width in zip(used, widths):
            self.token(x + 0.1, 0.15, kind)
            self.text(x + 0.24, 0.11, KEY[kind], ha="left", va="baseline")
            x += width
        return self.figure

    def text(self, x, y, words, size=9, color=INK, ha="center", **more):
        more = {"va": "center", "linespacing": 1.15, **more}
        self.ax.text(x, y, words, fontsize=size, color=color, ha=ha, **more)

    def box(self, x, y, width, height, words="", trained=False, **more):
        """A layer, a block or a step: grey when frozen, in the accent colour when trained."""
        self.seen.add("trained" if trained else "frozen")
        self.ax.add_patch(
            FancyBboxPatch(
                (x - width / 2 + 0.04, y - height / 2 + 0.04),
                width - 0.08,
                height - 0.08,
                boxstyle="round,pad=0.04",
                fc=TRAINED if trained else FROZEN,
                ec=EDGE,
                lw=1,
                zorder=2,
            )
        )
        self.text(x, y, words, zorder=4, **more)

    def frame(self, x, y, width, height):
        """A dotted line around things that belong together."""
        self.ax.add_patch(
            FancyBboxPatch(
                (x - width / 2, y - height / 2),
                width,
                height,
                boxstyle="round,pad=0.02",
                fc="none",
                ec=EDGE,
                lw=0.9,
                ls=(0, (1, 2)),
                zorder=1,
            )
        )

    def token(self, x, y, kind, size=TOKEN):
        """One token, or one entry of a key."""
        self.seen.add(kind)
        color = {
            "trained": TRAINED,
            "frozen": FROZEN,
            "class": CLASS,
            "patch": PATCH,
            "computed": COMPUTED,
        }
        line = {"trained": TRAINED, "computed": TRAINED, "class": CLASS}.get(kind, EDGE)
        self.ax.add_patch(
            Rectangle(
                (x - size / 2, y - size / 2),
                size,
                size,
                fc=color.get(kind, "white"),
                ec=line,
                lw=0.9,
                ls=(0, (2, 1.5)) if kind == "dropped" else "-",
                zorder=3,
            )
        )

    def stack(self, x, top, kinds, step=STEP):
        """Tokens below each other; returns their places."""
        places = [(x, top - row * step) for row in range(len(kinds))]
        for place, kind in zip(places, kinds):
            self.token(*place, kind)
        return places

    def arrow(self, start, end, color=EDGE, dashed=False, bend=0.0, width=1.1, head="-|>"):
        self.ax.add_patch(
            FancyArrowPatch(
                start,
                end,
                arrowstyle=head,
                mutation_scale=8,
                lw=width,
                color=color,
                shrinkA=0,
                shrinkB=0,
                ls=(0, (2, 1.5)) if dashed else "-",
                connectionstyle=f"arc3,rad={bend}",
                zorder=2.5,
            )
        )

    def path(self, *points, color=EDGE, dashed=False, width=1.1, arrow=True):
        """A line through points, with an arrowhead at its end."""
        for first, second in zip(points, points[1:]):
            last = arrow and second == points[-1]
            self.arrow(first, second, color, dashed, width=width, head="-|>" if last else "-")

    def sign(self, x, y, words="+", trained=False, radius=0.1, size=10):
        """A small circle: a sum, a product, a gate."""
        if trained:
            self.seen.add("trained")
        self.ax.add_patch(
            Circle((x, y), radius, fc=TRAINED if trained else "white", ec=EDGE, lw=1, zorder=3)
        )
        self.text(x, y - 0.005, words, size=size, zorder=4)

    def bottleneck(self, x, y, up_down=0.3, length=0.62):
        """Two trained wedges: narrower, then wide again."""
        self.seen.add("trained")
        wide, narrow, half = up_down / 2, up_down / 5, length / 2
        for sign in (-1, 1):
            corners = [
                (x + sign * half, y - wide),
                (x + sign * half, y + wide),
                (x + sign * 0.03, y + narrow),
            ]
            corners.append((x + sign * 0.03, y - narrow))
            self.ax.add_patch(Polygon(corners, fc=TRAINED, ec=EDGE, lw=1, zorder=3))

    def image(self, x, y, size=0.62, frame=None):
        """A small landscape; `frame` shows a trained "border" or trained pixels ("full") instead of
        or on it."""
        left, low = x - size / 2, y - size / 2
        whole = dict(lw=0.9, ec=EDGE, zorder=2)
        self.ax.add_patch(
            Rectangle((left, low), size, size, fc="white" if frame else "#e4ebf1", **whole)
        )
        if frame == "full":
            shades = np.random.default_rng(0).uniform(0.25, 1, (6, 6))
            for (row, column), shade in np.ndenumerate(shades):
                corner = left + column * size / 6, low + row * size / 6
                self.ax.add_patch(
                    Rectangle(corner, size / 6, size / 6, fc=TRAINED, alpha=shade, lw=0, zorder=3)
                )
        elif frame == "border":
            self.ax.add_patch(Rectangle((left, low), size, size, fc=TRAINED, **whole))
            self.ax.add_patch(
                Rectangle(
                    (left + size / 6, low + size / 6), size / 1.5, size / 1.5, fc="white", **whole
                )
            )
        else:
            hill = np.array(
                [(0, 0), (0, 0.25), (0.35, 0.62), (0.6, 0.3), (0.78, 0.45), (1, 0.2), (1, 0)]
            )
            self.ax.add_patch(Polygon(hill * size + (left, low), fc="#9fb0bd", lw=0, zorder=2))
            self.ax.add_patch(
                Circle(
                    (left + 0.75 * size, low + 0.76 * size),
                    0.1 * size,
                    fc="#c9b458",
                    lw=0,
                    zorder=2,
                )
            )
        if frame:
            self.seen.add("trained")

    def outline(self, x, y, color):
        """A thick line around a token."""
        self.ax.add_patch(
            Rectangle((x - 0.1, y - 0.1), 0.2, 0.2, fc="none", ec=color, lw=1.9, zorder=4)
        )

    def apart(self, start, end, color=EDGE):
        """A dashed line with bars at its ends: two things are pushed from each other."""
        self.arrow(start, end, color, dashed=True, head="|-|,widthA=0.2,widthB=0.2", width=0.9)

    def mark(self, x, y, group, size=7, hollow=False):
        """A sample of one of the class groups."""
        marker, color = GROUPS[group]
        self.ax.plot(
            x, y, marker, ms=size, mfc="white" if hollow else color, mec=color, mew=1.2, zorder=3
        )
